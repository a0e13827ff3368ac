//! What the settings say about one run: its agent, role, policy and mode.

use super::overrides::RunOverrides;
use super::{InputError, InputErrorKind, InputSyntax};
use crate::policy::{Mode, Network};
use crate::settings::{
    Agent, AgentName, AgentSettings, Effective, Origin, PolicyName, PolicySettings, Role, RoleSettings,
};

/// A value, and who asked for it, in words for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked<T> {
    /// The value.
    pub value: T,
    /// A flag, a key or a variable.
    pub by: String,
}

/// What was chosen by name.
#[derive(Debug)]
pub struct Choice<'a> {
    /// The CLI, if an agent was named.
    pub provider: Option<Agent>,
    /// The CLI of a service where no agent was named.
    pub default_agent: Agent,
    /// The name of that agent, if it is one of the settings.
    pub agent_name: Option<&'a AgentName>,
    /// The settings of that agent, if it is one of the settings.
    pub agent: Option<&'a AgentSettings>,
    /// The kind of work, if it was said.
    pub role_kind: Option<Role>,
    /// The settings of the role.
    pub role: Option<&'a RoleSettings>,
    /// The name of the policy.
    pub policy_name: Option<&'a PolicyName>,
    /// The policy.
    pub policy: Option<&'a PolicySettings>,
    /// The mode.
    pub mode: Asked<Mode>,
    /// The network, if anybody asked for one.
    pub network: Option<Asked<Network>>,
}

/// The agents that can be named: those of the settings first, then the CLIs whose names are not taken.
#[must_use]
pub fn agent_names(settings: &Effective) -> Vec<&str> {
    let agents = &settings.settings.agents;
    let own = Agent::ALL.map(Agent::as_str).into_iter().filter(|name| !agents.contains_key(*name));
    agents.keys().map(AgentName::as_str).chain(own).collect()
}

/// What the settings say about an agent by its name.
///
/// # Errors
/// If they have no such agent, or not what it names.
pub fn choose_agent<'a>(name: &str, settings: &'a Effective) -> Result<Choice<'a>, InputError> {
    choose(&RunOverrides { agent: Some(name.to_owned()), ..RunOverrides::default() }, settings)
}

/// Finds what the overrides name in the settings.
pub(super) fn choose<'a>(
    overrides: &RunOverrides,
    settings: &'a Effective,
) -> Result<Choice<'a>, InputError> {
    let syntax = overrides.syntax;
    let role = overrides.role.map(|kind| role(kind, overrides, settings)).transpose()?.flatten();
    let named = match (&overrides.agent, role.and_then(|role| role.agent.as_ref())) {
        (Some(name), _) => Some(agent(name, syntax, settings)?),
        (None, Some(name)) => Some(agent(name.as_str(), syntax, settings).map_err(|error| {
            let problem = format!("{}: the agent of the role, {}", syntax.name("role"), error.problem);
            InputError::conflict("role", problem, error.hint)
        })?),
        (None, None) => None,
    };
    let (provider, of_settings) = named.unzip();
    let (agent_name, agent) = of_settings.flatten().unzip();
    let own = agent.and_then(|agent| agent.policy.as_ref());
    let found = match (&overrides.policy, own) {
        (Some(name), _) => Some(policy(name, settings)?),
        (None, Some(name)) => Some(policy(name.as_str(), settings).map_err(|error| {
            let field = if overrides.agent.is_some() { "options.agent" } else { "role" };
            let problem = format!("{}: the policy of the agent, {}", syntax.name(field), error.problem);
            InputError::conflict(field, problem, error.hint)
        })?),
        (None, None) => None,
    };
    let (policy_name, policy) = found.unzip();
    Ok(Choice {
        provider,
        default_agent: settings.settings.service.default_agent,
        agent_name,
        agent,
        role_kind: overrides.role,
        role,
        policy_name,
        policy,
        mode: mode(overrides, agent, policy, settings),
        network: network(overrides, policy, settings),
    })
}

/// Whoever types a role wants what the settings give it. In a queue it also says which nodes may take the run, and
/// needs no settings.
fn role<'a>(
    role: Role,
    overrides: &RunOverrides,
    settings: &'a Effective,
) -> Result<Option<&'a RoleSettings>, InputError> {
    match settings.settings.roles.of(role) {
        None if overrides.role_needs_settings => Err(InputError::invalid(
            "role",
            format!("the settings have no role `{role}`"),
            format!("add \"roles\": {{\"{role}\": {{\"agent\": \"codex\"}}}} to ~/.cofferdam/settings.json"),
        )),
        found => Ok(found),
    }
}

type NamedAgent<'a> = (Agent, Option<(&'a AgentName, &'a AgentSettings)>);

/// An agent of the settings, or else one of the CLIs by any of its names.
fn agent<'a>(name: &str, syntax: InputSyntax, settings: &'a Effective) -> Result<NamedAgent<'a>, InputError> {
    const FIELD: &str = "options.agent";
    let agents = &settings.settings.agents;
    if let Some((name, agent)) = agents.get_key_value(name) {
        return Ok((agent.provider, Some((name, agent))));
    }
    name.parse().map(|provider| (provider, None)).map_err(|_| {
        let known = agent_names(settings).into_iter().map(|name| syntax.with(FIELD, name));
        let hint = format!("use one of: {}", known.collect::<Vec<_>>().join(", "));
        let problem = format!("`{}` is not an agent", crate::egress::printable(name));
        InputError::new(FIELD, InputErrorKind::AgentNotFound, problem, hint)
    })
}

fn policy<'a>(
    name: &str,
    settings: &'a Effective,
) -> Result<(&'a PolicyName, &'a PolicySettings), InputError> {
    let policies = &settings.settings.sandbox.policies;
    policies.get_key_value(name).ok_or_else(|| {
        let known: Vec<&str> = policies.keys().map(PolicyName::as_str).collect();
        let hint = match known.is_empty() {
            true => "add it to sandbox.policies in ~/.cofferdam/settings.json".to_owned(),
            false => format!("use one of: {}", known.join(", ")),
        };
        let problem = format!("`{}`: the settings have no such policy", crate::egress::printable(name));
        InputError::new("options.policy", InputErrorKind::PolicyNotFound, problem, hint)
    })
}

/// The order of `docs/settings.md`.
fn mode(
    overrides: &RunOverrides,
    agent: Option<&AgentSettings>,
    policy: Option<&PolicySettings>,
    settings: &Effective,
) -> Asked<Mode> {
    if let Some(value) = overrides.mode {
        return Asked { value, by: overrides.syntax.name("options.mode").to_owned() };
    }
    let of_policy = policy.and_then(|policy| policy.mode);
    let of_agent = agent.and_then(|agent| agent.sandbox_mode);
    match (&overrides.policy, of_policy, of_agent) {
        (Some(_), Some(value), _) => Asked { value, by: overrides.syntax.name("options.policy").to_owned() },
        (_, _, Some(value)) => Asked { value, by: "the agent's sandbox_mode".to_owned() },
        (None, Some(value), None) => Asked { value, by: "the agent's policy".to_owned() },
        (_, None, None) => Asked { value: settings.settings.sandbox.mode, by: set_by(settings, "mode") },
    }
}

fn network(
    overrides: &RunOverrides,
    policy: Option<&PolicySettings>,
    settings: &Effective,
) -> Option<Asked<Network>> {
    if let Some(value) = overrides.network {
        return Some(Asked { value, by: overrides.syntax.name("options.network").to_owned() });
    }
    if let Some(value) = policy.and_then(|policy| policy.network) {
        return Some(Asked { value, by: "the policy".to_owned() });
    }
    let set = settings.settings.sandbox.network;
    set.map(|value| Asked { value, by: set_by(settings, "network") })
}

fn set_by(settings: &Effective, key: &str) -> String {
    match settings.origin_of(&["sandbox", key]) {
        Origin::Default => "the default".to_owned(),
        origin @ (Origin::Global(_) | Origin::Local(_) | Origin::Untrusted(_)) => {
            format!("sandbox.{key} in {origin}")
        }
        origin @ Origin::Environment(_) => format!("the {origin}"),
        origin @ Origin::SystemConfig(_) => format!("sandbox.{key} by {origin}"),
    }
}
