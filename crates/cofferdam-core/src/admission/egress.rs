//! What a run may reach.

use std::str::FromStr;

use super::{Asked, Choice, Wishes};
use crate::egress::{AllowRule, EgressPolicy, Forward, HostError, RuleError, preset};
use crate::policy::{Mode, Network, gateway};
use crate::settings::{AllowEntry, EgressSettings};
use crate::value::ValueError;

/// The network of a run. `is_agent` says whether a coding agent is run, which needs its model.
pub(super) fn network_of(
    wishes: &Wishes,
    choice: &Choice<'_>,
    is_agent: bool,
) -> Result<Network, ValueError> {
    let spoken = wishes.spoken;
    let through_broker = needs_sealed(wishes);
    let needs_model = is_agent || wishes.model_access;
    let asked = choice.network.as_ref();
    let network = match (choice.mode.value, asked) {
        (Mode::Host, Some(Asked { value: Network::None | Network::Sealed, by })) => {
            let mode = match choice.mode.by == spoken.name("mode") {
                true => format!("{} host", choice.mode.by),
                false => format!("mode host ({})", choice.mode.by),
            };
            let native = spoken.with("mode", "native");
            let hint = match *by == spoken.name("network") {
                true => format!("type {native}, or leave {by} out"),
                false => format!(
                    "type {native}; or {}, if it is to run without walls",
                    spoken.with("network", "open")
                ),
            };
            let problem = format!("{mode} cannot close the network{}", in_front(by, wishes));
            return Err(ValueError { problem, hint });
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
    let sealed = spoken.with("network", "sealed");
    match (network, through_broker) {
        (Network::None | Network::Open, Some(wish)) => Err(ValueError {
            problem: format!(
                "{wish} works with {} sealed only, and the network is `{network}`",
                spoken.name("network")
            ),
            hint: format!("leave {wish} out, or type {sealed}"),
        }),
        (Network::None, None) if needs_model => Err(ValueError {
            problem: format!(
                "with {} none the agent cannot reach its model{}",
                spoken.name("network"),
                asked.map_or_else(String::new, |asked| in_front(&asked.by, wishes))
            ),
            hint: format!("type {sealed}: then it reaches its model and nothing else"),
        }),
        (Network::None | Network::Sealed | Network::Open, _) => Ok(network),
    }
}

/// Whoever wrote it knows; what was set long ago is named.
fn in_front(by: &str, wishes: &Wishes) -> String {
    match by == wishes.spoken.name("network") {
        true => String::new(),
        false => format!(" (the network is set by {by})"),
    }
}

fn allowed_by_policy<'a>(choice: &Choice<'a>) -> &'a [AllowEntry] {
    choice.policy.and_then(|policy| policy.allow.as_deref()).unwrap_or_default()
}

/// The first wish for something that only the broker's proxy gives.
fn needs_sealed(wishes: &Wishes) -> Option<String> {
    let wished = [
        (!wishes.allow.is_empty(), "allow"),
        (!wishes.forwards.is_empty(), "forward"),
        (wishes.push.is_some(), "push"),
    ];
    wished.into_iter().find(|(given, _)| *given).map(|(_, wish)| wishes.spoken.name(wish))
}

/// What the broker lets through.
pub(super) fn egress_of(
    wishes: &Wishes,
    choice: &Choice<'_>,
    network: Network,
    settings: &EgressSettings,
    is_agent: bool,
) -> Result<EgressPolicy, ValueError> {
    let mut allow: Vec<AllowRule> = Vec::new();
    // A policy that lists what a sealed run may reach says nothing about one that has no broker.
    let of_policy = match network {
        Network::Sealed => allowed_by_policy(choice),
        Network::None | Network::Open => &[],
    };
    for text in of_policy.iter().map(AllowEntry::as_str).chain(wishes.allow.iter().map(String::as_str)) {
        let rules = allow_rules(text, settings).map_err(|error| ValueError {
            problem: format!("{}: {}", wishes.spoken.name("allow"), error.problem),
            ..error
        })?;
        for rule in rules {
            if !allow.contains(&rule) {
                allow.push(rule);
            }
        }
    }
    let mut ports: Vec<u16> = wishes.forwards.iter().map(|forward| forward.port).collect();
    ports.sort_unstable();
    if let Some(twice) = ports.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(ValueError {
            problem: format!("{}: port {} is given twice", wishes.spoken.name("forward"), twice[0]),
            hint: "give each service a port of its own".to_owned(),
        });
    }
    Ok(EgressPolicy {
        allow,
        forwards: wishes.forwards.clone(),
        model: is_agent || wishes.model_access,
        vendor_tools: wishes.vendor_tools,
        push: wishes.push.as_ref().map(ToString::to_string),
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

/// As in `5432=db.example:5432`.
impl FromStr for Forward {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let refuse = |why: &str| ValueError {
            problem: format!("`{}`: {why}", crate::egress::printable(text)),
            hint: "type PORT=HOST:PORT, such as `5432=db.example:5432`".to_owned(),
        };
        let (port, target) = text.split_once('=').ok_or_else(|| refuse("there is no `=` in it"))?;
        let port: u16 = port.parse().map_err(|_| refuse("the port is a number from 1024 to 65535"))?;
        if port < 1024 {
            return Err(refuse("ports below 1024 are closed to the agent's user"));
        }
        if port == gateway::PORT {
            return Err(refuse("this port is the broker's own"));
        }
        let target = target.parse().map_err(|error: HostError| refuse(&error.to_string()))?;
        Ok(Self { port, target })
    }
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
