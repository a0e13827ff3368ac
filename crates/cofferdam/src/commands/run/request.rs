//! From flags to a `RunRequest`. After this nothing checks again: whoever holds the request holds a valid
//! one.

use std::ffi::OsString;

use cofferdam_core::{
    AgentSetup, ContainerPolicy, Effective, FilePattern, ImageReferenceError, LEAST_DISK_BYTES,
    LEAST_MEMORY_BYTES, Limits, LimitsRule, MOST_PIDS, Mask, Mode, Mount, Policy, RelativeFolder,
    RetryPolicy, RunId, RunRequest, SandboxSettings, Settings, ValueError,
};

use super::agent::agent_from;
use super::args::RunArgs;
use super::choice::{self, Choice};
use super::{egress, env, mount};
use crate::caller::Caller;
use crate::failure::UsageError;
use crate::repository::{Chosen, Wanted, choose};
use crate::secrets::CallerSecrets;
use crate::units;

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
    choose(wanted, caller)
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
    let choice = choice::choose(args, settings)?;
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
    let request = RunRequest {
        id,
        source,
        agent,
        policy: policy_from(args, caller, &choice, &settings.settings, is_agent, &mut notices)?,
        retry: retry_from(args, &choice, &settings.settings)?,
        workspace: cofferdam_core::WorkspaceKind::Overlay,
        conversation: None,
        // Set by the process that claims the run, when it has its own name.
        claimable_by: None,
        replay_of: None,
        placement: cofferdam_core::Placement::default(),
        working_dir: working_dir_from(args)?,
        publish: None,
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
    let (agent, mode) = (Some(agent.to_owned()), mode.map(|mode| mode.to_string()));
    let args = RunArgs { agent, mode, ..RunArgs::default() };
    let choice = choice::choose(&args, settings)?;
    let policy = policy_from(&args, caller, &choice, &settings.settings, true, &mut Vec::new())?;
    Ok((policy, choice.mode.by))
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
    caller: &Caller,
    choice: &Choice<'_>,
    settings: &Settings,
    is_agent: bool,
    notices: &mut Vec<String>,
) -> Result<Policy, UsageError> {
    let (mode, sandbox) = (choice.mode.value, &settings.sandbox);
    let network = egress::network_from(args, choice, is_agent)?;
    Ok(Policy {
        mode,
        container: container_from(args, mode, sandbox)?,
        network,
        egress: egress::egress_from(args, choice, network, &settings.egress, is_agent)?,
        budget: egress::budget_from(args)?,
        limits: limits_from(args, choice, sandbox)?,
        // Somebody watches an attached run, and its summary says when limits are best effort.
        limits_rule: LimitsRule::BestEffort,
        env: env::names_from(args, caller, choice, sandbox, network, notices)?,
        mounts: mounts_from(args, mode, caller)?,
        mask: mask_from(args, choice, sandbox)?,
        path_mapping_mode: sandbox.path_mapping_mode,
        timeout_ms: timeout_from(args, choice, sandbox)?,
        grace_ms: Policy::default().grace_ms,
    })
}

fn timeout_from(args: &RunArgs, choice: &Choice<'_>, sandbox: &SandboxSettings) -> Result<u64, UsageError> {
    if let Some(text) = &args.timeout {
        let timeout = units::duration("--timeout", text)?;
        return Ok(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    }
    let of_policy = choice.policy.and_then(|policy| policy.timeout_seconds);
    Ok(u64::from(of_policy.unwrap_or(sandbox.timeout_seconds).count()) * 1000)
}

fn container_from(
    args: &RunArgs,
    mode: Mode,
    settings: &SandboxSettings,
) -> Result<ContainerPolicy, UsageError> {
    let SandboxSettings { docker, apple, rewrite_loopback, .. } = settings;
    let mut container = match mode {
        Mode::Host | Mode::Native if args.image.is_some() => {
            return Err(UsageError::new(
                format!("--image is for containers, and the mode is `{mode}`"),
                "type `--mode docker`, or leave --image out",
            ));
        }
        Mode::Host | Mode::Native => return Ok(ContainerPolicy::default()),
        Mode::Docker => ContainerPolicy {
            image: docker.image.clone(),
            network: docker.network.clone(),
            runtime: docker.runtime.clone(),
            ..ContainerPolicy::default()
        },
        Mode::Apple => ContainerPolicy {
            image: apple.image.clone(),
            network: apple.network.clone(),
            runtime_command: apple.runtime_command.clone(),
            ..ContainerPolicy::default()
        },
    };
    container.rewrite_loopback = rewrite_loopback.clone();
    if let Some(image) = &args.image {
        container.image = image.parse().map_err(|error: ImageReferenceError| {
            UsageError::new(
                format!("--image: {error}"),
                "type an image such as `--image cofferdam/worker:latest`",
            )
        })?;
    }
    Ok(container)
}

/// The flags, over the policy, over the settings of the mode, over those of all.
fn limits_from(
    args: &RunArgs,
    choice: &Choice<'_>,
    settings: &SandboxSettings,
) -> Result<Limits, UsageError> {
    let mut limits = settings.limits_in(choice.mode.value);
    if let Some(policy) = choice.policy {
        policy.limits.apply(&mut limits);
    }
    if let Some(text) = &args.memory {
        limits.memory_bytes = units::bytes("--memory", text, LEAST_MEMORY_BYTES)?;
    }
    if let Some(text) = &args.cpus {
        limits.cpus_milli = units::cpus_milli("--cpus", text)?;
    }
    if let Some(text) = &args.pids {
        limits.pids = units::count("--pids", text, 1, MOST_PIDS)?;
    }
    if let Some(text) = &args.disk {
        limits.workspace_bytes = units::bytes("--disk", text, LEAST_DISK_BYTES)?;
    }
    Ok(limits)
}

fn retry_from(args: &RunArgs, choice: &Choice<'_>, settings: &Settings) -> Result<RetryPolicy, UsageError> {
    let mut retry = RetryPolicy::default();
    let of_policy = choice.policy.and_then(|policy| policy.max_attempts);
    retry.max_attempts = of_policy.unwrap_or(settings.sandbox.max_attempts).count();
    if let Some(text) = &args.max_attempts {
        retry.max_attempts = max_attempts(text)?;
    }
    Ok(retry)
}

/// The value of `--max-attempts`.
pub(crate) fn max_attempts(text: &str) -> Result<u32, UsageError> {
    units::count("--max-attempts", text, 1, 100)
}

fn mounts_from(args: &RunArgs, mode: Mode, caller: &Caller) -> Result<Vec<Mount>, UsageError> {
    if !mode.is_sandboxed() && !args.mount.is_empty() {
        return Err(UsageError::new(
            "--mount has no meaning with --mode host, which sees the whole machine",
            "leave --mount out, or leave --mode host out",
        ));
    }
    args.mount.iter().map(|text| mount::parse(text, caller)).collect()
}

/// What is hidden anyway, what the settings add, and what the caller wants to be shown.
fn mask_from(args: &RunArgs, choice: &Choice<'_>, sandbox: &SandboxSettings) -> Result<Mask, UsageError> {
    let mut mask = Mask::default();
    let set = choice.policy.and_then(|policy| policy.mask.as_ref()).unwrap_or(&sandbox.mask);
    mask.hide.extend(set.hide.iter().map(ToString::to_string));
    mask.show.extend(set.show.iter().map(ToString::to_string));
    for pattern in &args.unmask {
        let pattern: FilePattern = pattern.parse().map_err(|error: ValueError| {
            UsageError::new(
                format!("--unmask {}", error.problem),
                "type a pattern such as `--unmask '.env*'`",
            )
        })?;
        mask.show.push(pattern.to_string());
    }
    Ok(mask)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
