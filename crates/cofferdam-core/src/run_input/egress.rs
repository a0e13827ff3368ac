//! What a run may reach.

use super::forward::forwards_of;
use super::overrides::RunOverrides;
use super::{Asked, Choice, InputError, InputErrorKind};
use crate::egress::{AllowRule, EgressPolicy, RuleError, preset};
use crate::policy::{Mode, Network};
use crate::settings::{AllowEntry, EgressSettings, Settings};
use crate::value::ValueError;

/// The network of a run. `is_agent` says whether a coding agent is run, which needs its model.
pub(super) fn network_of(
    overrides: &RunOverrides,
    choice: &Choice<'_>,
    is_agent: bool,
) -> Result<Network, InputError> {
    let syntax = overrides.syntax;
    let through_broker = needs_sealed(overrides);
    let needs_model = is_agent || overrides.model_access;
    let asked = choice.network.as_ref();
    let network = match (choice.mode.value, asked) {
        (Mode::Host, Some(asked @ Asked { value: Network::None | Network::Sealed, .. })) => {
            return Err(host_is_open(overrides, choice, &asked.by));
        }
        (Mode::Host, _) => Network::Open,
        (Mode::Native | Mode::Docker | Mode::Apple, Some(asked)) => asked.value,
        (Mode::Native | Mode::Docker | Mode::Apple, None)
            if needs_model || through_broker.is_some() || !allowed_by_policy(choice).is_empty() =>
        {
            Network::Sealed
        }
        (Mode::Native | Mode::Docker | Mode::Apple, None) => Network::None,
    };
    let sealed = syntax.with(NETWORK, "sealed");
    match (network, through_broker) {
        (Network::None | Network::Open, Some(field)) => {
            let name = syntax.name(field);
            Err(InputError::conflict(
                field,
                format!(
                    "{name} works with {} sealed only, and the network is `{network}`",
                    syntax.name(NETWORK)
                ),
                format!("leave {name} out, or use {sealed}"),
            ))
        }
        (Network::None, None) if needs_model => Err(InputError::conflict(
            NETWORK,
            format!(
                "with {} none the agent cannot reach its model{}",
                syntax.name(NETWORK),
                asked.map_or_else(String::new, |asked| set_elsewhere(&asked.by, overrides))
            ),
            format!("use {sealed}: then it reaches its model and nothing else"),
        )),
        (Network::None | Network::Sealed | Network::Open, _) => Ok(network),
    }
}

const NETWORK: &str = "options.network";

fn host_is_open(overrides: &RunOverrides, choice: &Choice<'_>, network_by: &str) -> InputError {
    let syntax = overrides.syntax;
    let mode = match choice.mode.by == syntax.name("options.mode") {
        true => format!("{} host", choice.mode.by),
        false => format!("mode host ({})", choice.mode.by),
    };
    let native = syntax.with("options.mode", "native");
    let hint = match network_by == syntax.name(NETWORK) {
        true => format!("use {native}, or leave {network_by} out"),
        false => format!("use {native}; or {}, if it is to run without walls", syntax.with(NETWORK, "open")),
    };
    let problem = format!("{mode} cannot close the network{}", set_elsewhere(network_by, overrides));
    InputError::conflict(NETWORK, problem, hint)
}

/// Whoever wrote it knows; what was set long ago is named.
fn set_elsewhere(by: &str, overrides: &RunOverrides) -> String {
    match by == overrides.syntax.name(NETWORK) {
        true => String::new(),
        false => format!(" (the network is set by {by})"),
    }
}

fn allowed_by_policy<'a>(choice: &Choice<'a>) -> &'a [AllowEntry] {
    choice.policy.and_then(|policy| policy.allow.as_deref()).unwrap_or_default()
}

/// The first field that asks for something that only the broker's proxy gives.
fn needs_sealed(overrides: &RunOverrides) -> Option<&'static str> {
    let asked = [
        (!overrides.allow.is_empty(), "options.allow"),
        (!overrides.forwards.is_empty(), "options.forward"),
        (overrides.push.is_some(), "options.push"),
    ];
    asked.into_iter().find(|(given, _)| *given).map(|(_, field)| field)
}

/// What the broker lets through.
pub(super) fn egress_of(
    overrides: &RunOverrides,
    choice: &Choice<'_>,
    network: Network,
    settings: &Settings,
    is_agent: bool,
) -> Result<EgressPolicy, InputError> {
    let syntax = overrides.syntax;
    let mut allow: Vec<AllowRule> = Vec::new();
    // A policy that lists what a sealed run may reach says nothing about one that has no broker.
    let of_policy = match network {
        Network::Sealed => allowed_by_policy(choice),
        Network::None | Network::Open => &[],
    };
    let asked = overrides.allow.iter().map(|entry| ("options.allow", entry));
    for (field, entry) in of_policy.iter().map(|entry| ("options.policy", entry)).chain(asked) {
        let rules = allow_rules(entry.as_str(), &settings.egress).map_err(|error| {
            let problem = format!("{}: {}", syntax.name(field), error.problem);
            InputError::new(field, InputErrorKind::Conflict, problem, error.hint)
        })?;
        for rule in rules {
            if !allow.contains(&rule) {
                allow.push(rule);
            }
        }
    }
    let forwards = match network {
        Network::Sealed => forwards_of(&overrides.forwards, &settings.sandbox, syntax)?,
        Network::None | Network::Open => Vec::new(),
    };
    Ok(EgressPolicy {
        allow,
        forwards,
        model: is_agent || overrides.model_access,
        vendor_tools: overrides.vendor_tools.clone(),
        push: overrides.push.as_ref().map(ToString::to_string),
        fetch: None,
    })
}

/// A rule, or the name of a set of rules: the settings' own first, then the presets.
///
/// # Errors
/// If it is neither.
pub fn allow_rules(text: &str, settings: &EgressSettings) -> Result<Vec<AllowRule>, ValueError> {
    if let Some(set) = settings.sets.get(text) {
        return Ok(set.clone());
    }
    if let Some(preset) = preset(text) {
        let rule = |text: &&str| text.parse().expect("presets are rules; a test of theirs says so");
        return Ok(preset.iter().map(rule).collect());
    }
    let rule = text.parse().map_err(|error: RuleError| ValueError {
        problem: error.to_string(),
        hint: "type HOST:PORT such as `registry.npmjs.org:443`, or a set such as `npm`, `pypi`, `crates`"
            .to_owned(),
    })?;
    Ok(vec![rule])
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
