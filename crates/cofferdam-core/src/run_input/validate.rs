//! From an input to a request, in one place for all callers.

use std::path::Path;

use super::choice::choose;
use super::env::{PassedOn, passed_on};
use super::mount::mounts_of;
use super::overrides::{RunOverrides, text_of};
use super::policy::{limits_of, policy_of, retry_of, timeout_of};
use super::read_only::workspace_access_of;
use super::source::{find_source, of_project};
use super::work::work_of;
use super::{Choice, InputError, InputSyntax, MayNamePath, RunInput, Surroundings};
use crate::ids::{PlaceId, RunId};
use crate::placement::{Placement, Priority};
use crate::policy::{Limits, LimitsRule, Policy};
use crate::project::Project;
use crate::publish::{CommitMessage, Publish};
use crate::repo_url::LocalUrls;
use crate::run::{RunRequest, Source, WorkspaceKind};
use crate::settings::{AgentName, Effective, PolicyName};
use crate::work::Work;

/// What an input is read against.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The id of the new run.
    pub id: &'a RunId,
    /// The settings.
    pub settings: &'a Effective,
    /// How the caller writes what it asks for.
    pub syntax: InputSyntax,
    /// Whether limits may be best effort.
    pub limits_rule: LimitsRule,
    /// Whether an address may name a place on this machine.
    pub local_urls: LocalUrls,
    /// The longest time of one attempt that the operator allows, and what an attempt takes where nobody says anything.
    /// Without it the settings of the sandbox say so.
    pub max_execution_time_ms: Option<u64>,
    /// Where the run stands in the queue.
    pub placing: Placing<'a>,
    /// Where the workspace comes from.
    pub workspace: Workspace<'a>,
    /// Whether the caller may name a path.
    pub may_name_path: MayNamePath<'a>,
    /// The caller and its machine.
    pub surroundings: &'a dyn Surroundings,
}

/// Where a run stands in the queue.
#[derive(Debug, Clone, Copy)]
pub enum Placing<'a> {
    /// In none: it belongs to a terminal, whose process claims it. A role is then what the settings say of it and
    /// nothing else.
    Attached,
    /// In that of the service. A role also says which nodes may take the run.
    Queued {
        /// The state folder whose nodes alone can work on paths of this machine.
        place: &'a PlaceId,
    },
}

/// Where the workspace comes from.
#[derive(Debug, Clone, Copy)]
pub enum Workspace<'a> {
    /// From what `repo` and `ref` name.
    FromInput,
    /// From the project that `project_id` names, which was looked up. Whoever registered it was allowed to, so that
    /// whoever runs on it is.
    Project(&'a Project),
    /// From this folder, which the caller has chosen: absolute and without links.
    Folder(&'a Path),
}

/// An input that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validated {
    /// What is to be done.
    pub request: RunRequest,
    /// Who asked for its mode, in words for a message.
    pub mode_by: String,
    /// The policy of the settings that it keeps to.
    pub policy_name: Option<PolicyName>,
    /// The limits that it would have if the input said nothing about them.
    pub settings_limits: Limits,
    /// Keys of models that `env_allowlist` lists, and that a closed network keeps out.
    pub kept_out_env: Vec<String>,
    /// Variables that `env_allowlist` lists, and whose value is not text.
    pub unreadable_env: Vec<String>,
}

/// Checks an input down to its last field.
///
/// # Errors
/// The first field that is wrong, with what to write instead.
pub fn validate(input: &RunInput, context: &Context<'_>) -> Result<Validated, InputError> {
    let Context { settings, syntax, surroundings, .. } = *context;
    let role_needs_settings = matches!(context.placing, Placing::Attached);
    let overrides = RunOverrides::of(input, syntax, role_needs_settings)?;
    let choice = choose(&overrides, settings)?;
    let source = found_source(input, context)?;
    let work = work_of(input, &overrides, &choice, surroundings)?;
    let is_agent = work.agent().is_some();
    let mounts = mounts_of(&input.options.mounts, context.may_name_path, surroundings)?;
    let timeout_ms =
        timeout_of(&overrides, &choice, &settings.settings.sandbox, context.max_execution_time_ms);
    let workspace_access = workspace_access_of(input, &overrides, &choice, &source, &mounts)?;
    let policy = Policy {
        limits_rule: context.limits_rule,
        timeout_ms,
        workspace_access,
        ..policy_of(&overrides, &choice, &settings.settings, is_agent, mounts)?
    };
    let PassedOn { names, kept_out, not_text } = passed_on(
        &input.options.env,
        &choice,
        &settings.settings.sandbox,
        policy.network,
        syntax,
        surroundings,
    )?;
    let policy = Policy { env: names, ..policy };
    let is_bound = source.is_here() || !policy.mounts.is_empty();
    let request = RunRequest {
        id: context.id.clone(),
        publish: publish_of(input, &source, syntax)?,
        source,
        workspace: WorkspaceKind::Overlay,
        working_dir: text_of("options.working_dir", input.options.working_dir.as_deref())?,
        placement: placement_of(input, context, &choice, &work, is_bound)?,
        work,
        conversation: None,
        policy,
        retry: retry_of(&overrides, &choice, &settings.settings),
        claimable_by: None,
        replay_of: None,
    };
    let untouched = RunOverrides { syntax, ..RunOverrides::default() };
    Ok(Validated {
        request,
        policy_name: choice.policy_name.cloned(),
        settings_limits: limits_of(&untouched, &choice, &settings.settings.sandbox),
        mode_by: choice.mode.by,
        kept_out_env: kept_out,
        unreadable_env: not_text,
    })
}

fn found_source(input: &RunInput, context: &Context<'_>) -> Result<Source, InputError> {
    let (repo, reference) = (input.repo.as_deref(), input.reference.as_deref());
    let syntax = context.syntax;
    match (context.workspace, &input.project_id) {
        (Workspace::Folder(path), _) => Ok(Source::Local { path: path.to_owned() }),
        (_, Some(_)) if repo.is_some() => Err(InputError::invalid(
            "project_id",
            format!("cannot be combined with {}: a project has its repository already", syntax.name("repo")),
            "leave one of them out",
        )),
        (Workspace::Project(project), _) => of_project(project, reference),
        (Workspace::FromInput, Some(_)) => Err(InputError::invalid(
            "project_id",
            "projects are known to a service alone",
            format!("name the repository with {}", syntax.name("repo")),
        )),
        (Workspace::FromInput, None) => {
            let may_name_path = context.may_name_path;
            find_source(repo, reference, context.local_urls, syntax, may_name_path, context.surroundings)
        }
    }
}

/// Where it stands in the queue. A CLI that is no agent of the settings counts under its own name.
fn placement_of(
    input: &RunInput,
    context: &Context<'_>,
    choice: &Choice<'_>,
    work: &Work,
    is_bound: bool,
) -> Result<Placement, InputError> {
    let priority = input.priority.map(Priority::try_from).transpose();
    let priority = priority.map_err(|error| InputError::of_value("priority", error))?.unwrap_or_default();
    let lane = text_of("lane", input.lane.as_deref())?;
    let Placing::Queued { place } = context.placing else {
        return Ok(Placement { priority, lane, ..Placement::default() });
    };
    let named_after = || -> Option<AgentName> { work.agent()?.as_str().parse().ok() };
    let project = match context.workspace {
        Workspace::Project(project) => Some(project.id.clone()),
        Workspace::FromInput | Workspace::Folder(_) => None,
    };
    Ok(Placement {
        role: choice.role_kind.unwrap_or_default(),
        priority,
        lane,
        project,
        agent: choice.agent_name.cloned().or_else(named_after),
        place: is_bound.then(|| place.clone()),
    })
}

fn publish_of(input: &RunInput, source: &Source, syntax: InputSyntax) -> Result<Option<Publish>, InputError> {
    let branch = text_of("branch", input.branch.as_deref())?;
    let commit_message: Option<CommitMessage> = text_of("commit_message", input.commit_message.as_deref())?;
    let Some(branch) = branch else {
        return match commit_message {
            None => Ok(None),
            Some(_) => Err(InputError::invalid(
                "commit_message",
                "there is no branch to commit to",
                format!("name one with {}, or leave it out", syntax.name("branch")),
            )),
        };
    };
    let publish = Publish { branch, commit_message };
    match publish.refused_for(source) {
        // A project has the address that it has.
        Some(error) if input.project_id.is_some() => {
            Err(InputError::conflict("branch", error.problem, error.hint))
        }
        Some(error) => Err(InputError::of_value("branch", error)),
        None => Ok(Some(publish)),
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
