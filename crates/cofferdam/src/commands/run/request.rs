//! From flags to a `RunRequest`. After this nothing checks again: whoever holds the request holds a valid
//! one.

use std::ffi::{OsStr, OsString};

use cofferdam_core::{
    AgentSetup, ContainerPolicy, ImageReferenceError, LEAST_MEMORY_BYTES, Limits, LimitsRule, MOST_PIDS,
    Mask, Mode, Mount, Policy, RetryPolicy, RunId, RunRequest, SandboxSettings, Settings,
};
use globset::Glob;

use super::agent::agent_from;
use super::args::RunArgs;
use super::{egress, mount};
use crate::caller::Caller;
use crate::failure::UsageError;
use crate::repository::{Chosen, Wanted, choose};
use crate::secrets::CallerSecrets;
use crate::units;

/// The least disk on which a workspace makes sense.
const LEAST_DISK: u64 = 1 << 20;

/// A checked command line.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// What is to be done.
    pub(crate) request: RunRequest,
    /// The repository that `--apply` changes; `None` without `--apply`.
    pub(crate) apply_to: Option<std::path::PathBuf>,
    /// What to say before it starts.
    pub(crate) notice: Option<String>,
}

/// Turns flags into a request, or says what to type instead.
pub(crate) fn request_from(
    args: &RunArgs,
    id: RunId,
    caller: &Caller,
    settings: &Settings,
    with_key: &CallerSecrets,
) -> Result<Accepted, UsageError> {
    let wanted = if args.no_repo {
        Wanted::Nothing
    } else {
        Wanted::Repository { repo: args.repo.as_deref(), reference: args.reference.as_deref() }
    };
    let Chosen { source, local } = choose(wanted, caller)?;
    let chosen = agent_from(args, caller, with_key, local.as_deref(), mode_from(args)?)?;
    let is_agent = chosen.is_some();
    let (agent, notice) = match chosen {
        Some(chosen) => (chosen.setup, chosen.notice),
        None => (AgentSetup::Command { argv: argv_from(&args.command)? }, None),
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
        policy: policy_from(args, caller, settings, is_agent)?,
        retry: retry_from(args)?,
        // Set by the process that claims the run, when it has its own name.
        claimable_by: None,
    };
    Ok(Accepted { request, apply_to, notice })
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
    settings: &Settings,
    is_agent: bool,
) -> Result<Policy, UsageError> {
    let defaults = Policy::default();
    let mode = mode_from(args)?;
    let network = egress::network_from(args, mode, is_agent)?;
    let timeout = args.timeout.as_deref().map(|text| units::duration("--timeout", text)).transpose()?;
    Ok(Policy {
        mode,
        container: container_from(args, mode, &settings.sandbox)?,
        network,
        egress: egress::egress_from(args, &settings.egress, is_agent)?,
        budget: egress::budget_from(args)?,
        limits: limits_from(args, mode, &settings.sandbox)?,
        // Somebody watches an attached run, and its summary says when limits are best effort.
        limits_rule: LimitsRule::BestEffort,
        env: args.env.iter().map(|name| env_name(name, caller)).collect::<Result<_, _>>()?,
        mounts: mounts_from(args, mode, caller)?,
        mask: mask_from(&args.unmask)?,
        timeout_ms: timeout.map_or(defaults.timeout_ms, |t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
        grace_ms: defaults.grace_ms,
    })
}

fn mode_from(args: &RunArgs) -> Result<Mode, UsageError> {
    match args.mode.as_deref().map(str::parse::<Mode>) {
        None => Ok(Mode::Native),
        Some(Ok(mode)) => Ok(mode),
        Some(Err(error)) => Err(UsageError::new(error.to_string(), "type `--mode native`")),
    }
}

fn container_from(
    args: &RunArgs,
    mode: Mode,
    settings: &SandboxSettings,
) -> Result<ContainerPolicy, UsageError> {
    let SandboxSettings { docker, apple, rewrite_loopback } = settings;
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

/// The flags, over the settings of a container, over what is right for most.
fn limits_from(args: &RunArgs, mode: Mode, settings: &SandboxSettings) -> Result<Limits, UsageError> {
    let mut limits = Limits::default();
    let (memory, cpus, pids) = match mode {
        Mode::Host | Mode::Native => (None, None, None),
        Mode::Docker => (settings.docker.memory, settings.docker.cpus, settings.docker.pids_limit),
        Mode::Apple => (settings.apple.memory, settings.apple.cpus, settings.apple.pids_limit),
    };
    limits.memory_bytes = memory.map_or(limits.memory_bytes, |memory| memory.bytes());
    limits.cpus_milli = cpus.map_or(limits.cpus_milli, |cpus| cpus.milli());
    limits.pids = pids.map_or(limits.pids, |pids| pids.count());
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
        limits.workspace_bytes = units::bytes("--disk", text, LEAST_DISK)?;
    }
    Ok(limits)
}

fn retry_from(args: &RunArgs) -> Result<RetryPolicy, UsageError> {
    let mut retry = RetryPolicy::default();
    if let Some(text) = &args.max_attempts {
        retry.max_attempts = units::count("--max-attempts", text, 1, 100)?;
    }
    Ok(retry)
}

/// A command line is public (`ps`, shell history), so values are never taken from it.
fn env_name(name: &OsStr, caller: &Caller) -> Result<String, UsageError> {
    let shown = name.to_string_lossy();
    if let Some((name, _)) = shown.split_once('=') {
        return Err(UsageError::new(
            format!("--env takes the name of a variable, not a value (in `{name}=…`)"),
            format!("type `export {name}=…` first, then `--env {name}`, which keeps the value out of `ps`"),
        ));
    }
    let well_formed = !shown.is_empty()
        && !shown.starts_with(|c: char| c.is_ascii_digit())
        && shown.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !well_formed {
        return Err(UsageError::new(
            format!("--env `{shown}` is not the name of a variable"),
            "type a name of letters, digits and underscores, such as `--env LANG`",
        ));
    }
    match caller.env.get(name) {
        Some(value) if value.to_str().is_some() => Ok(shown.into_owned()),
        Some(_) => Err(UsageError::new(
            format!("the value of {shown} is not valid UTF-8"),
            format!("export {shown} with a value that is, or leave --env {shown} out"),
        )),
        None => Err(UsageError::new(
            format!("--env {shown}: no such variable is set here"),
            format!("type `export {shown}=…` first"),
        )),
    }
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

fn mask_from(unmask: &[String]) -> Result<Mask, UsageError> {
    let mut mask = Mask::default();
    for pattern in unmask {
        if pattern.is_empty() {
            return Err(UsageError::new("--unmask is empty", "type a pattern such as `--unmask .env.test`"));
        }
        Glob::new(pattern).map_err(|error| {
            UsageError::new(
                format!("--unmask `{pattern}` is not a pattern: {}", error.kind()),
                "type a pattern such as `--unmask '.env*'`",
            )
        })?;
        mask.show.push(pattern.clone());
    }
    Ok(mask)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
