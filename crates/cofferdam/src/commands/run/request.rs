//! From flags to a `RunRequest`. After this nothing checks again: whoever holds the request holds a valid
//! one.

use std::ffi::OsString;

use cofferdam_core::{
    AgentSetup, Choice, Effective, LimitsRule, Mode, Policy, Publish, RelativeFolder, RunId, RunRequest,
    Settings, Source, ValueError, Wishes, choose, retry_of,
};

use super::agent::agent_from;
use super::args::RunArgs;
use super::env;
use super::wishes::wishes_from;
use crate::caller::Caller;
use crate::failure::UsageError;
use crate::repository::{self, Chosen, Wanted};
use crate::secrets::CallerSecrets;

/// A checked command line.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// What is to be done.
    pub(crate) request: RunRequest,
    /// The repository that `--apply` changes; `None` without `--apply`.
    pub(crate) apply_to: Option<std::path::PathBuf>,
    /// What to say before it starts.
    pub(crate) notices: Vec<String>,
    /// Who asked for its mode.
    pub(crate) mode_by: String,
}

/// The repository that the flags name.
pub(crate) fn repository_from(args: &RunArgs, caller: &Caller) -> Result<Chosen, UsageError> {
    let wanted = if args.no_repo {
        Wanted::Nothing
    } else {
        Wanted::Repository { repo: args.repo.as_deref(), reference: args.reference.as_deref() }
    };
    repository::choose(wanted, caller)
}

/// Turns flags into a request, or says what to type instead.
pub(crate) fn request_from(
    args: &RunArgs,
    id: RunId,
    caller: &Caller,
    repository: Chosen,
    settings: &Effective,
    with_key: &CallerSecrets,
) -> Result<Accepted, UsageError> {
    let Chosen { source, local } = repository;
    let wishes = wishes_from(args, caller)?;
    let choice = choose(&wishes, settings)?;
    let chosen = agent_from(args, caller, with_key, local.as_deref(), &choice)?;
    let is_agent = chosen.is_some();
    let mut notices = Vec::new();
    let agent = match chosen {
        Some(chosen) => {
            notices.extend(chosen.notice);
            chosen.setup
        }
        None => AgentSetup::Command { argv: argv_from(&args.command)? },
    };
    let apply_to = match (args.apply, local) {
        (false, _) => None,
        (true, Some(root)) => Some(root),
        (true, None) => {
            return Err(UsageError::new(
                "--apply needs a repository on this machine to apply the diff to",
                "leave --apply out, and keep the diff with `--output FILE`",
            ));
        }
    };
    let publish = publish_from(args, &source)?;
    let request = RunRequest {
        id,
        source,
        agent,
        policy: policy_from(args, &wishes, caller, &choice, &settings.settings, is_agent, &mut notices)?,
        retry: retry_of(&wishes, &choice, &settings.settings),
        workspace: cofferdam_core::WorkspaceKind::Overlay,
        conversation: None,
        // Set by the process that claims the run, when it has its own name.
        claimable_by: None,
        replay_of: None,
        placement: cofferdam_core::Placement::default(),
        working_dir: working_dir_from(args)?,
        publish,
    };
    Ok(Accepted { request, apply_to, notices, mode_by: choice.mode.by })
}

/// The policy of runs of an agent, in its own mode or in another, and who chose the mode.
pub(crate) fn policy_of(
    agent: &str,
    mode: Option<Mode>,
    caller: &Caller,
    settings: &Effective,
) -> Result<(Policy, String), UsageError> {
    let wishes = Wishes { agent: Some(agent.to_owned()), mode, ..Wishes::default() };
    let choice = choose(&wishes, settings)?;
    let args = RunArgs::default();
    let policy = policy_from(&args, &wishes, caller, &choice, &settings.settings, true, &mut Vec::new())?;
    Ok((policy, choice.mode.by))
}

fn publish_from(args: &RunArgs, source: &Source) -> Result<Option<Publish>, UsageError> {
    let Some(branch) = &args.commit_branch else { return Ok(None) };
    let refused =
        |flag: &str, error: ValueError| UsageError::new(format!("{flag} {}", error.problem), error.hint);
    let publish = Publish {
        branch: branch.parse().map_err(|error| refused("--commit-branch", error))?,
        commit_message: args
            .commit_message
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|error| refused("--commit-message", error))?,
    };
    match publish.refused_for(source) {
        Some(error) => Err(refused("--commit-branch:", error)),
        None => Ok(Some(publish)),
    }
}

fn working_dir_from(args: &RunArgs) -> Result<Option<RelativeFolder>, UsageError> {
    let parsed = args.working_dir.as_deref().map(str::parse).transpose();
    parsed
        .map_err(|error: ValueError| UsageError::new(format!("--working-dir {}", error.problem), error.hint))
}

fn argv_from(command: &[OsString]) -> Result<Vec<String>, UsageError> {
    let hint = "type `cofferdam run \"make the tests pass\"`, or a program: `cofferdam run -- make test`";
    let argv: Option<Vec<String>> = command.iter().map(|arg| arg.to_str().map(str::to_owned)).collect();
    let argv = argv.ok_or_else(|| UsageError::new("the command is not valid UTF-8", hint))?;
    match argv.first() {
        Some(program) if !program.is_empty() => Ok(argv),
        _ => Err(UsageError::new("there is neither a prompt nor a program", hint)),
    }
}

fn policy_from(
    args: &RunArgs,
    wishes: &Wishes,
    caller: &Caller,
    choice: &Choice<'_>,
    settings: &Settings,
    is_agent: bool,
    notices: &mut Vec<String>,
) -> Result<Policy, UsageError> {
    // Somebody watches an attached run, and its summary says when limits are best effort.
    let policy = cofferdam_core::policy_of(wishes, choice, settings, is_agent, LimitsRule::BestEffort)?;
    let env = env::names_from(args, caller, choice, &settings.sandbox, policy.network, notices)?;
    Ok(Policy { env, ..policy })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
