//! What a run must keep to.

use super::egress::{egress_of, network_of};
use super::{Choice, Wishes};
use crate::mask::Mask;
use crate::policy::{ContainerPolicy, Limits, LimitsRule, Mode, Policy};
use crate::retry::RetryPolicy;
use crate::settings::{SandboxSettings, Settings};
use crate::value::ValueError;

/// The policy of a run: the wishes, over the policy that they name, over the settings of the mode, over those of all.
/// Which variables are passed on is for the caller to say: see [`super::passed_on`].
///
/// # Errors
/// If the wishes and the settings cannot hold together.
pub fn policy_of(
    wishes: &Wishes,
    choice: &Choice<'_>,
    settings: &Settings,
    is_agent: bool,
    limits_rule: LimitsRule,
) -> Result<Policy, ValueError> {
    let (mode, sandbox) = (choice.mode.value, &settings.sandbox);
    let network = network_of(wishes, choice, is_agent)?;
    if !mode.is_sandboxed() && !wishes.mounts.is_empty() {
        let spoken = wishes.spoken;
        let mount = match spoken {
            super::Spoken::Flags => spoken.name("mount"),
            super::Spoken::Fields => spoken.name("mounts"),
        };
        return Err(ValueError {
            problem: format!(
                "{mount} has no meaning with {} host, which sees the whole machine",
                spoken.name("mode")
            ),
            hint: format!("leave {mount} out, or leave {} host out", spoken.name("mode")),
        });
    }
    Ok(Policy {
        mode,
        container: container_of(wishes, mode, sandbox)?,
        network,
        egress: egress_of(wishes, choice, network, &settings.egress, is_agent)?,
        budget: wishes.budget,
        limits: limits_of(wishes, choice, sandbox),
        limits_rule,
        env: Vec::new(),
        mounts: wishes.mounts.clone(),
        mask: mask_of(wishes, choice, sandbox),
        path_mapping_mode: sandbox.path_mapping_mode,
        timeout_ms: timeout_of(wishes, choice, sandbox),
        grace_ms: Policy::default().grace_ms,
    })
}

/// How often a run is tried.
#[must_use]
pub fn retry_of(wishes: &Wishes, choice: &Choice<'_>, settings: &Settings) -> RetryPolicy {
    let of_policy = choice.policy.and_then(|policy| policy.max_attempts);
    let set = of_policy.unwrap_or(settings.sandbox.max_attempts).count();
    RetryPolicy { max_attempts: wishes.max_attempts.unwrap_or(set), ..RetryPolicy::default() }
}

/// What is added to the CLI's own system prompt: the caller's or else the agent's words, and those of the role after
/// them.
#[must_use]
pub fn system_prompt_of(own: Option<&str>, choice: &Choice<'_>) -> Option<String> {
    let own = own.or_else(|| choice.agent?.system_prompt.as_deref());
    let of_role = choice.role.and_then(|role| role.append_system_prompt.as_deref());
    let words: Vec<&str> = own.into_iter().chain(of_role).filter(|text| !text.is_empty()).collect();
    (!words.is_empty()).then(|| words.join("\n\n"))
}

fn timeout_of(wishes: &Wishes, choice: &Choice<'_>, sandbox: &SandboxSettings) -> u64 {
    let of_policy = choice.policy.and_then(|policy| policy.timeout_seconds);
    let set = u64::from(of_policy.unwrap_or(sandbox.timeout_seconds).count()) * 1000;
    wishes.timeout_ms.unwrap_or(set)
}

fn container_of(
    wishes: &Wishes,
    mode: Mode,
    settings: &SandboxSettings,
) -> Result<ContainerPolicy, ValueError> {
    let SandboxSettings { docker, apple, rewrite_loopback, .. } = settings;
    let mut container = match mode {
        Mode::Host | Mode::Native if wishes.image.is_some() => {
            let image = wishes.spoken.name("image");
            return Err(ValueError {
                problem: format!("{image} is for containers, and the mode is `{mode}`"),
                hint: format!("type {}, or leave {image} out", wishes.spoken.with("mode", "docker")),
            });
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
    if let Some(image) = &wishes.image {
        container.image = image.clone();
    }
    Ok(container)
}

fn limits_of(wishes: &Wishes, choice: &Choice<'_>, settings: &SandboxSettings) -> Limits {
    let mut limits = settings.limits_in(choice.mode.value);
    if let Some(policy) = choice.policy {
        policy.limits.apply(&mut limits);
    }
    limits.memory_bytes = wishes.memory_bytes.unwrap_or(limits.memory_bytes);
    limits.cpus_milli = wishes.cpus_milli.unwrap_or(limits.cpus_milli);
    limits.pids = wishes.pids.unwrap_or(limits.pids);
    limits.workspace_bytes = wishes.disk_bytes.unwrap_or(limits.workspace_bytes);
    limits
}

/// What is hidden anyway, what the settings add, and what the caller wants to be shown.
fn mask_of(wishes: &Wishes, choice: &Choice<'_>, sandbox: &SandboxSettings) -> Mask {
    let mut mask = Mask::default();
    let set = choice.policy.and_then(|policy| policy.mask.as_ref()).unwrap_or(&sandbox.mask);
    mask.hide.extend(set.hide.iter().map(ToString::to_string));
    mask.show.extend(set.show.iter().map(ToString::to_string));
    mask.show.extend(wishes.unmask.iter().map(ToString::to_string));
    mask
}
