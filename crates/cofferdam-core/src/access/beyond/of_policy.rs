//! A policy, beside what the settings themselves would give.

use crate::access::{Actor, Beyond};
use crate::egress::{AllowRule, PRESETS};
use crate::mask::Mask;
use crate::policy::{Limits, LimitsRule, Mode, Network, Policy};
use crate::quantity::show_bytes;
use crate::run::RunRequest;
use crate::run_input::{MODEL_KEYS, allow_rules};
use crate::settings::{EgressSettings, PolicySettings, SandboxSettings, ServiceSettings, Settings};
use crate::work::Work;

/// What is the same under every policy of the settings, for work that a process does.
pub(super) fn whatever_the_policy(actor: &Actor, request: &RunRequest, settings: &Settings) -> Vec<Beyond> {
    let policy = &request.policy;
    let mut beyond = Vec::new();
    beyond.extend(mode_and_network(actor, policy, settings));
    if let Some(mount) = policy.mounts.first() {
        beyond
            .push(Beyond::new("options.mounts", format!("`{}` is a path of the node", mount.path.display())));
    }
    beyond.extend(forwards(policy, settings));
    if let Some(tool) = policy.egress.vendor_tools.first() {
        let problem = format!("the model's vendor would run `{tool}` on the agent's behalf");
        beyond.push(Beyond::new("options.vendor_tools", problem));
    }
    beyond.extend(container(policy, &settings.sandbox));
    beyond.extend(of_every_run(request, settings));
    beyond
}

/// What is the same for every run, whatever it does. A direct run has no mode that could be bound, and the only tool that the
/// vendor runs for it is the search that the settings leave to everybody.
pub(super) fn of_every_run(request: &RunRequest, settings: &Settings) -> Vec<Beyond> {
    let policy = &request.policy;
    let mut beyond = Vec::new();
    if policy.limits_rule == LimitsRule::BestEffort {
        beyond.push(Beyond::new("limits", "they are best effort".to_owned()));
    }
    let most_ms = match request.work {
        Work::Spec(_) => u64::from(settings.specs.max_seconds.count()) * 1_000,
        Work::Program { .. } | Work::Direct(_) | Work::Agent { .. } => {
            u64::from(settings.service.max_execution_time_ms.count())
        }
    };
    if policy.timeout_ms > most_ms {
        let problem = format!("{} ms is more than {most_ms} ms", policy.timeout_ms);
        beyond.push(Beyond::new("options.timeout_ms", problem));
    }
    beyond
}

/// What a policy of the settings can give, or the settings without one.
pub(super) fn under(chosen: Option<&PolicySettings>, policy: &Policy, settings: &Settings) -> Vec<Beyond> {
    let sandbox = &settings.sandbox;
    let mut beyond = Vec::new();
    beyond.extend(env(chosen, policy, sandbox));
    beyond.extend(mask(chosen, &policy.mask, sandbox));
    let known = known_rules(chosen, &settings.egress);
    if let Some(rule) = policy.egress.allow.iter().find(|rule| !known.contains(rule)) {
        beyond.push(Beyond::new("options.allow", format!("`{rule}` is in no set of the settings")));
    }
    beyond.extend(limits(chosen, policy, sandbox));
    beyond
}

/// Whether a policy names no mode and no network that the lists keep from everybody.
pub(super) fn is_open_to_all(policy: &PolicySettings, service: &ServiceSettings) -> bool {
    let network = policy.network.unwrap_or(match policy.mode {
        Some(Mode::Host) => Network::Open,
        Some(Mode::Native | Mode::Docker | Mode::Apple) | None => Network::Sealed,
    });
    match policy.mode {
        Some(mode) => service.allows_mode(mode, network),
        // In whichever mode it is used, its network has to be one of that mode's.
        None => service.allowed_modes.iter().any(|allowed| allowed.allows_network(network)),
    }
}

fn mode_and_network(actor: &Actor, policy: &Policy, settings: &Settings) -> Option<Beyond> {
    let (mode, network) = (policy.mode, policy.network);
    // Whoever needs no key could be anybody on this machine, so that no list opens the machine to them.
    if *actor == Actor::Loopback && !mode.is_sandboxed() {
        return Some(Beyond::without_key("options.mode", format!("mode `{mode}` needs an API key")));
    }
    if *actor == Actor::Loopback && !network.is_closed() {
        return Some(Beyond::without_key("options.network", format!("network `{network}` needs an API key")));
    }
    if settings.service.allows_mode(mode, network) {
        return None;
    }
    Some(match settings.service.allows_mode(mode, Network::Sealed) {
        true => {
            Beyond::new("options.network", format!("network `{network}` is not allowed in mode `{mode}`"))
        }
        false => Beyond::new("options.mode", format!("mode `{mode}` is not allowed")),
    })
}

/// A service that is neither every run's nor of the list.
fn forwards(policy: &Policy, settings: &Settings) -> Option<Beyond> {
    let Settings { sandbox, service, .. } = settings;
    for forward in &policy.egress.forwards {
        let mut named = sandbox.forwards.iter().filter(|(_, set)| set.forward() == *forward);
        let first = named.clone().next().map(|(name, _)| name);
        if named.any(|(name, set)| set.always || service.allowed_forwards.contains(name)) {
            continue;
        }
        let problem = match first {
            Some(name) => format!("the service `{name}` is not allowed"),
            None => format!("port {} leads to `{}`", forward.port, forward.target),
        };
        return Some(Beyond::new("options.forward", problem));
    }
    None
}

fn container(policy: &Policy, sandbox: &SandboxSettings) -> Vec<Beyond> {
    let Some(given) = sandbox.container_in(policy.mode) else { return Vec::new() };
    let mut beyond = Vec::new();
    let asked = &policy.container;
    if asked.image != given.image {
        let problem = format!("`{}` is not the image of the settings", asked.image);
        beyond.push(Beyond::new("options.image", problem));
    }
    let differing = [
        (asked.network != given.network, "network"),
        (asked.runtime != given.runtime, "runtime"),
        (asked.runtime_command != given.runtime_command, "program"),
        (asked.rewrite_loopback != given.rewrite_loopback, "list of rewritten addresses"),
    ];
    if let Some((_, what)) = differing.into_iter().find(|(differs, _)| *differs) {
        beyond.push(Beyond::new("container", format!("its {what} is not that of the settings")));
    }
    beyond
}

fn env(chosen: Option<&PolicySettings>, policy: &Policy, sandbox: &SandboxSettings) -> Option<Beyond> {
    let listed = sandbox.env_under(chosen);
    // The settings pass keys of models on to an open network alone.
    let is_passed_on = |name: &&String| {
        listed.iter().any(|listed| listed.as_str() == *name)
            && !(policy.network.is_closed() && MODEL_KEYS.contains(&name.as_str()))
    };
    let name = policy.env.iter().find(|name| !is_passed_on(name))?;
    Some(Beyond::new("options.env", format!("`{name}` is not passed on by the settings")))
}

fn mask(chosen: Option<&PolicySettings>, asked: &Mask, sandbox: &SandboxSettings) -> Option<Beyond> {
    let given = sandbox.mask_under(chosen);
    if let Some(shown) = asked.show.iter().find(|shown| !given.show.contains(shown)) {
        return Some(Beyond::new("options.unmask", format!("`{shown}` is not shown by the settings")));
    }
    let hidden = given.hide.iter().find(|hidden| !asked.hide.contains(hidden))?;
    Some(Beyond::new("options.unmask", format!("`{hidden}` is hidden by the settings")))
}

/// Every rule that a name of the settings stands for, and those of the policy. A rule of the caller's own could name any host
/// of the operator's network.
fn known_rules(chosen: Option<&PolicySettings>, egress: &EgressSettings) -> Vec<AllowRule> {
    let of_policy = chosen.and_then(|chosen| chosen.allow.as_ref()).into_iter().flatten();
    let names = of_policy.map(|entry| entry.as_str());
    let names =
        names.chain(egress.sets.keys().map(String::as_str)).chain(PRESETS.iter().map(|(name, _)| *name));
    names.filter_map(|name| allow_rules(name, egress).ok()).flatten().collect()
}

/// Less than the settings give may be taken, and not more.
fn limits(chosen: Option<&PolicySettings>, policy: &Policy, sandbox: &SandboxSettings) -> Vec<Beyond> {
    let given = sandbox.limits_under(chosen, policy.mode);
    let Limits { memory_bytes, cpus_milli, pids, open_files, output_bytes, workspace_bytes } = policy.limits;
    let bytes = |field, asked: u64, given: u64| {
        let problem = || format!("{} is more than {}", show_bytes(asked), show_bytes(given));
        (asked > given).then(|| Beyond::new(field, problem()))
    };
    let count = |field, what: &str, asked: u64, given: u64| {
        (asked > given).then(|| Beyond::new(field, format!("{asked} {what} are more than {given}")))
    };
    let cpus = |asked: u32, given: u32| {
        let shown = |milli: u32| f64::from(milli) / 1000.0;
        let problem = || format!("{} processors are more than {}", shown(asked), shown(given));
        (asked > given).then(|| Beyond::new("options.cpus", problem()))
    };
    let all = [
        bytes("options.memory", memory_bytes, given.memory_bytes),
        cpus(cpus_milli, given.cpus_milli),
        count("options.pids", "processes", u64::from(pids), u64::from(given.pids)),
        bytes("options.disk", workspace_bytes, given.workspace_bytes),
        count("limits", "open files", open_files, given.open_files),
        bytes("limits", output_bytes, given.output_bytes),
    ];
    all.into_iter().flatten().collect()
}
