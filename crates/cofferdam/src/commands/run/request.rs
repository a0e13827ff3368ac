//! From the input of a run to a `RunRequest`, as a terminal has it done: the core validates it, and what only this machine
//! knows is looked at.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cofferdam_core::{
    Context, Effective, InputSyntax, LimitsRule, LocalUrls, Mode, Placing, Policy, RunId, RunInput,
    RunOptions, RunRequest, Surroundings, Validated, Workspace, validate,
};

use super::agent::Agents;
use super::args::RunArgs;
use super::surroundings::CommandSurroundings;
use crate::caller::Caller;
use crate::failure::UsageError;
use crate::repository::{self, Chosen};
use crate::secrets::CallerSecrets;

/// An input that was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// What is to be done.
    pub(crate) request: RunRequest,
    /// The repository that `--apply` changes; `None` without `--apply`.
    pub(crate) apply_to: Option<PathBuf>,
    /// What to say before it starts.
    pub(crate) notices: Vec<String>,
    /// Who asked for its mode.
    pub(crate) mode_by: String,
}

/// The repository that the flags name.
pub(crate) fn repository_from(args: &RunArgs, caller: &Caller) -> Result<Chosen, UsageError> {
    match args.no_repo {
        true => Ok(Chosen::default()),
        false => repository::choose(args.repo.as_deref(), caller),
    }
}

/// The repository that the diff is applied to, if it is to be.
pub(crate) fn apply_to(args: &RunArgs, repository: &Chosen) -> Result<Option<PathBuf>, UsageError> {
    match (args.apply, &repository.local) {
        (false, _) => Ok(None),
        (true, _) if args.read_only => Err(UsageError::new(
            "conflicting options: --read-only leaves nothing to apply with --apply",
            "leave one of them out",
        )),
        (true, Some(root)) => Ok(Some(root.clone())),
        (true, None) => Err(UsageError::new(
            "--apply needs a repository on this machine to apply the diff to",
            "leave --apply out, and keep the diff with `--output FILE`",
        )),
    }
}

/// Turns an input into a request, or says what to type instead.
pub(crate) fn request_from(
    input: &RunInput,
    id: &RunId,
    caller: &Caller,
    workspace: Workspace<'_>,
    settings: &Effective,
    secrets: &CallerSecrets,
) -> Result<Accepted, UsageError> {
    let folder = match workspace {
        Workspace::Folder(path) => Some(path),
        Workspace::FromInput | Workspace::Project(_) => input.repo.as_deref().map(Path::new),
    };
    let repository = folder.filter(|path| path.is_absolute());
    let agents = Agents { caller, secrets, repository };
    let surroundings = CommandSurroundings::new(agents);
    let Validated { request, mode_by, kept_out_env, unreadable_env, .. } =
        validate(input, &context(id, workspace, settings, &surroundings))?;
    let mut notices = Vec::new();
    match surroundings.chosen() {
        Some(notice) => notices.push(notice),
        None => agents.check(&request.work, request.policy.mode)?,
    }
    for name in unreadable_env {
        notices.push(format!("{name} is not passed on: its value is not valid UTF-8"));
    }
    if !kept_out_env.is_empty() {
        let kept_out = kept_out_env.join(", ");
        notices.push(format!("not passed on by env_allowlist: {kept_out} (the broker adds keys outside)"));
    }
    Ok(Accepted { request, apply_to: None, notices, mode_by })
}

/// The policy of runs of an agent, in its own mode or in another, and who chose the mode.
pub(crate) fn policy_of(
    agent: &str,
    mode: Option<Mode>,
    caller: &Caller,
    settings: &Effective,
) -> Result<(Policy, String), UsageError> {
    let input = RunInput {
        // The policy is the same whatever the agent is to do.
        task: Some("work".to_owned()),
        options: RunOptions {
            agent: Some(agent.to_owned()),
            mode: mode.map(|mode| mode.to_string()),
            ..RunOptions::default()
        },
        ..RunInput::default()
    };
    let agents = Agents { caller, secrets: &CallerSecrets::default(), repository: None };
    let surroundings = CommandSurroundings::new(agents);
    let id = RunId::new(0, 0);
    let validated = validate(&input, &context(&id, Workspace::FromInput, settings, &surroundings))?;
    Ok((validated.request.policy, validated.mode_by))
}

/// This machine, to a request that has no agent.
pub(crate) fn surroundings_of(caller: &Caller) -> impl Surroundings + Sync {
    static NONE: LazyLock<CallerSecrets> = LazyLock::new(CallerSecrets::default);
    CommandSurroundings::new(Agents { caller, secrets: &NONE, repository: None })
}

fn context<'a>(
    id: &'a RunId,
    workspace: Workspace<'a>,
    settings: &'a Effective,
    surroundings: &'a CommandSurroundings<'_>,
) -> Context<'a> {
    Context {
        id,
        settings,
        syntax: InputSyntax::Flags,
        // Somebody watches an attached run, and its summary says when limits are best effort.
        limits_rule: LimitsRule::BestEffort,
        local_urls: LocalUrls::Allow,
        max_execution_time_ms: None,
        placing: Placing::Attached,
        workspace,
        // Whoever sits at this machine may name what they can see, and the kernel says what that is.
        may_name_path: &|_, _| true,
        surroundings,
    }
}

/// Whether a service may be asked for this repository. Looked at before anything is sent: an address with a password in
/// it is for nobody.
pub(super) fn check_repository(input: &RunInput, caller: &Caller) -> Result<(), UsageError> {
    let agents = Agents { caller, secrets: &CallerSecrets::default(), repository: None };
    let surroundings = CommandSurroundings::new(agents);
    let (repo, reference) = (input.repo.as_deref(), input.reference.as_deref());
    let (local_urls, syntax) = (LocalUrls::Allow, InputSyntax::Flags);
    cofferdam_core::find_source(repo, reference, local_urls, syntax, &|_, _| true, &surroundings)?;
    Ok(())
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
