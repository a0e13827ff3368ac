//! From a request on the wire to a `RunRequest`. After this nothing checks again: whoever holds the request holds a valid
//! one, which its caller may ask for.

mod agent;
mod allowed;
mod named;
mod source;
mod wishes;

use std::num::NonZeroU32;

use cofferdam_api::{CreateRunRequest, ErrorCode};
use cofferdam_core::{
    AgentName, AgentSetup, CommitMessage, LimitsRule, Placement, Policy, Project, Publish, RunId, RunRequest,
    Source, ValueError, WorkspaceKind, choose, passed_on, policy_of, retry_of,
};
use serde_json::json;

pub(crate) use self::allowed::{path as may_name_path, refuse as not_allowed};
pub(crate) use self::source::{Found, find_source};
use crate::access::Caller;
use crate::app::App;
use crate::errors::ApiError;

/// What was looked up for a request before it is judged.
pub(crate) struct LookedUp {
    /// Where the workspace comes from.
    pub(crate) found: Found,
    /// The project that was named.
    pub(crate) project: Option<Project>,
    /// Paths that are to be visible inside, as they really are.
    pub(crate) mounts: Vec<cofferdam_core::Mount>,
}

/// Looks up what a request names: a project, a path, an address.
pub(crate) async fn look_up(
    app: &App,
    caller: &Caller,
    body: &CreateRunRequest,
) -> Result<LookedUp, ApiError> {
    let reference = body.reference.as_deref();
    let mounts = allowed::mounts(app, caller, &body.options.mounts).await?;
    let Some(named) = &body.project_id else {
        let found = match body.repo.as_deref() {
            Some(repo) => find_source(app, caller, repo, reference).await?,
            None => source::nothing(reference)?,
        };
        return Ok(LookedUp { found, project: None, mounts });
    };
    if body.repo.is_some() {
        return Err(ApiError::invalid_field(
            "project_id",
            "a project has its repository already",
            "leave either `project_id` or `repo` out",
        ));
    }
    let project = app.store().find_project(named).await?.ok_or_else(|| {
        ApiError::new(ErrorCode::ProjectNotFound, "there is no project of this id or name")
            .with(json!({ "field": "project_id" }))
    })?;
    // Whoever registered it was allowed to, so that whoever runs on it is.
    let found = source::of_project(&project, reference)?;
    Ok(LookedUp { found, project: Some(project), mounts })
}

/// Judges a request.
pub(crate) fn admit(
    app: &App,
    caller: &Caller,
    id: RunId,
    body: &CreateRunRequest,
    looked_up: LookedUp,
) -> Result<RunRequest, ApiError> {
    let settings = app.settings();
    let mut wishes = wishes::of(body)?;
    wishes.mounts = looked_up.mounts;
    named::check(body, settings)?;
    let role = wishes::role_of(body)?;
    let conflict = |error: ValueError| ApiError::conflict(&error);
    let choice = choose(&wishes, settings).map_err(conflict)?;
    let agent = agent::setup_of(body, &choice)?;
    let is_agent = agent.cli().is_some();
    wishes.timeout_ms = Some(timeout_ms(app, wishes.timeout_ms, &choice));
    let policy =
        policy_of(&wishes, &choice, &settings.settings, is_agent, LimitsRule::Required).map_err(conflict)?;
    let policy = Policy { env: env_of(body, &choice, app, &policy)?, ..policy };
    allowed::check(app, caller, body, &wishes, &choice, &policy, is_agent)?;
    let agent_name = choice.agent_name.cloned().or_else(|| named_after(&agent));
    let is_bound = looked_up.found.is_here || !policy.mounts.is_empty();
    Ok(RunRequest {
        id,
        publish: publish_of(body, &looked_up.found.source)?,
        source: looked_up.found.source,
        workspace: WorkspaceKind::Overlay,
        working_dir: wishes::text_of("options.working_dir", body.options.working_dir.as_deref())?,
        agent,
        conversation: None,
        policy,
        retry: retry_of(&wishes, &choice, &settings.settings),
        placement: Placement {
            role,
            priority: wishes::priority_of(body)?,
            lane: wishes::text_of("lane", body.lane.as_deref())?,
            project: looked_up.project.map(|project| project.id),
            agent: agent_name,
            place: is_bound.then(|| app.place().clone()),
        },
        claimable_by: None,
        replay_of: None,
    })
}

/// What the caller asks for, up to what the operator allows; all of that if the caller asks for nothing.
fn timeout_ms(app: &App, asked: Option<u64>, choice: &cofferdam_core::Choice<'_>) -> u64 {
    let most = u64::from(app.settings().settings.service.max_execution_time_ms.count());
    let of_policy = choice.policy.and_then(|policy| policy.timeout_seconds);
    let set = of_policy.map(|seconds| u64::from(seconds.count()) * 1000);
    asked.or(set).unwrap_or(most).min(most)
}

/// A CLI that is no agent of the settings counts under its own name.
fn named_after(agent: &AgentSetup) -> Option<AgentName> {
    agent.cli().and_then(|provider| provider.as_str().parse().ok())
}

fn env_of(
    body: &CreateRunRequest,
    choice: &cofferdam_core::Choice<'_>,
    app: &App,
    policy: &Policy,
) -> Result<Vec<String>, ApiError> {
    let (listed, _) = passed_on(choice, &app.settings().settings.sandbox, policy.network);
    let mut names: Vec<String> = listed.into_iter().map(str::to_owned).collect();
    for name in &body.options.env {
        let name: cofferdam_core::VariableName = wishes::of_field("options.env", name)?;
        names.push(name.as_str().to_owned());
    }
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Ok(names)
}

fn publish_of(body: &CreateRunRequest, source: &Source) -> Result<Option<Publish>, ApiError> {
    let branch = wishes::text_of("branch", body.branch.as_deref())?;
    let commit_message: Option<CommitMessage> =
        wishes::text_of("commit_message", body.commit_message.as_deref())?;
    let Some(branch) = branch else {
        return match commit_message {
            None => Ok(None),
            Some(_) => Err(ApiError::invalid_field(
                "commit_message",
                "there is no branch to commit to",
                "name one with `branch`, or leave `commit_message` out",
            )),
        };
    };
    let publish = Publish { branch, commit_message };
    match publish.refused_for(source) {
        // A project has the address that it has.
        Some(error) if body.project_id.is_some() => Err(ApiError::conflict(&error)),
        Some(error) => Err(ApiError::invalid("branch", &error)),
        None => Ok(Some(publish)),
    }
}

/// A limit on how many runs of a project may be under way.
pub(crate) fn concurrency(count: Option<u32>) -> Result<Option<NonZeroU32>, ApiError> {
    let refuse = || {
        let hint = "write a number from 1 to 100000, or leave it out for no limit";
        ApiError::invalid_field("max_concurrency", "it is out of its bounds", hint)
    };
    let bounded = |count| NonZeroU32::new(count).filter(|count| count.get() <= 100_000);
    count.map(|count| bounded(count).ok_or_else(refuse)).transpose()
}
