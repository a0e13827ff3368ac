//! What a run must keep to.

use super::bounds::MOST_TIMEOUT_MS;
use super::egress::{egress_of, network_of};
use super::overrides::RunOverrides;
use super::{Choice, InputError};
use crate::mask::Mask;
use crate::policy::{ContainerPolicy, Limits, Mode, Mount, Policy};
use crate::retry::RetryPolicy;
use crate::settings::{SandboxSettings, Settings};

/// The policy of a run: the overrides, over the policy that they name, over the settings of the mode, over those of all.
/// Time and variables are added by the caller.
pub(super) fn policy_of(
    overrides: &RunOverrides,
    choice: &Choice<'_>,
    settings: &Settings,
    is_agent: bool,
    mounts: Vec<Mount>,
) -> Result<Policy, InputError> {
    let (mode, sandbox) = (choice.mode.value, &settings.sandbox);
    let network = network_of(overrides, choice, is_agent)?;
    if !mode.is_sandboxed() && !mounts.is_empty() {
        let mount = overrides.syntax.name("options.mounts");
        let host = overrides.syntax.with("options.mode", "host");
        return Err(InputError::conflict(
            "options.mounts",
            format!("conflicting options: {mount} has no meaning with {host}, which sees the whole machine"),
            format!("leave {mount} out, or use {}", overrides.syntax.with("options.mode", "native")),
        ));
    }
    Ok(Policy {
        mode,
        container: container_of(overrides, mode, sandbox)?,
        network,
        egress: egress_of(overrides, choice, network, settings, is_agent)?,
        budget: overrides.budget,
        limits: limits_of(overrides, choice, sandbox),
        mounts,
        mask: mask_of(overrides, choice, sandbox),
        path_mapping_mode: sandbox.path_mapping_mode,
        ..Policy::default()
    })
}

/// How often a run is tried.
pub(super) fn retry_of(overrides: &RunOverrides, choice: &Choice<'_>, settings: &Settings) -> RetryPolicy {
    let of_policy = choice.policy.and_then(|policy| policy.max_attempts);
    let set = of_policy.unwrap_or(settings.sandbox.max_attempts).count();
    RetryPolicy { max_attempts: overrides.max_attempts.unwrap_or(set), ..RetryPolicy::default() }
}

/// The time of one attempt: what was asked for or else what the policy says.
pub(super) fn timeout_of(
    overrides: &RunOverrides,
    choice: &Choice<'_>,
    sandbox: &SandboxSettings,
    most_ms: Option<u64>,
) -> u64 {
    let of_policy = choice.policy.and_then(|policy| policy.timeout_seconds);
    let asked = overrides.timeout_ms.or(of_policy.map(|seconds| u64::from(seconds.count()) * 1000));
    time_of(asked, sandbox, most_ms)
}

/// The time of one attempt. Where an operator allows so much and no more, that is also what an attempt takes of which nobody
/// says anything; otherwise the settings of the sandbox say it.
pub(super) fn time_of(asked: Option<u64>, sandbox: &SandboxSettings, most_ms: Option<u64>) -> u64 {
    let default_ms = most_ms.unwrap_or(u64::from(sandbox.timeout_seconds.count()) * 1000);
    asked.unwrap_or(default_ms).min(most_ms.unwrap_or(MOST_TIMEOUT_MS)).min(MOST_TIMEOUT_MS)
}

fn container_of(
    overrides: &RunOverrides,
    mode: Mode,
    settings: &SandboxSettings,
) -> Result<ContainerPolicy, InputError> {
    let Some(mut container) = settings.container_in(mode) else {
        if overrides.image.is_none() {
            return Ok(ContainerPolicy::default());
        }
        let image = overrides.syntax.name("options.image");
        let docker = overrides.syntax.with("options.mode", "docker");
        return Err(InputError::conflict(
            "options.image",
            format!("{image} is for containers, and the mode is `{mode}`"),
            format!("use {docker}, or leave {image} out"),
        ));
    };
    if let Some(image) = &overrides.image {
        container.image = image.clone();
    }
    Ok(container)
}

/// How much a run may use.
pub(super) fn limits_of(overrides: &RunOverrides, choice: &Choice<'_>, settings: &SandboxSettings) -> Limits {
    let mut limits = settings.limits_under(choice.policy, choice.mode.value);
    limits.memory_bytes = overrides.memory_bytes.unwrap_or(limits.memory_bytes);
    limits.cpus_milli = overrides.cpus_milli.unwrap_or(limits.cpus_milli);
    limits.pids = overrides.pids.unwrap_or(limits.pids);
    limits.workspace_bytes = overrides.disk_bytes.unwrap_or(limits.workspace_bytes);
    limits
}

/// What is hidden anyway, what the settings add, and what the caller wants to be shown.
fn mask_of(overrides: &RunOverrides, choice: &Choice<'_>, sandbox: &SandboxSettings) -> Mask {
    let mut mask = sandbox.mask_under(choice.policy);
    mask.show.extend(overrides.unmask.iter().map(ToString::to_string));
    mask
}
