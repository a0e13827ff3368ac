//! What the settings say about one run: its agent, role, policy and mode.

use super::Wishes;
use crate::policy::{Mode, Network};
use crate::settings::{
    AgentName, AgentSettings, Effective, Origin, PolicySettings, Provider, Role, RoleSettings,
};
use crate::value::ValueError;

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
    pub provider: Option<Provider>,
    /// The name of that agent, if it is one of the settings.
    pub agent_name: Option<&'a AgentName>,
    /// The settings of that agent, if it is one of the settings.
    pub agent: Option<&'a AgentSettings>,
    /// The kind of work, if it was said.
    pub role_kind: Option<Role>,
    /// The settings of the role.
    pub role: Option<&'a RoleSettings>,
    /// The policy.
    pub policy: Option<&'a PolicySettings>,
    /// The mode.
    pub mode: Asked<Mode>,
    /// The network, if anybody asked for one.
    pub network: Option<Asked<Network>>,
}

/// Finds what the wishes name in the settings.
///
/// # Errors
/// If they name something that is not there.
pub fn choose<'a>(wishes: &Wishes, settings: &'a Effective) -> Result<Choice<'a>, ValueError> {
    let kind = wishes.role.as_deref().map(|name| role_kind(name, wishes)).transpose()?;
    let role = kind.map(|kind| role(kind, wishes, settings)).transpose()?.flatten();
    let named = match (&wishes.agent, role.and_then(|role| role.agent.as_ref())) {
        (Some(name), _) => Some(agent(&wishes.spoken.name("agent"), name, wishes, settings)?),
        (None, Some(name)) => Some(agent("the agent of the role", name.as_str(), wishes, settings)?),
        (None, None) => None,
    };
    let (provider, of_settings) = named.unzip();
    let (agent_name, agent) = of_settings.flatten().unzip();
    let own = agent.and_then(|agent| agent.policy.as_ref());
    let policy = match (&wishes.policy, own) {
        (Some(name), _) => Some(policy(&wishes.spoken.name("policy"), name, settings)?),
        (None, Some(name)) => Some(policy("the policy of the agent", name.as_str(), settings)?),
        (None, None) => None,
    };
    Ok(Choice {
        provider,
        agent_name,
        agent,
        role_kind: kind,
        role,
        policy,
        mode: mode(wishes, agent, policy, settings),
        network: network(wishes, policy, settings),
    })
}

fn role_kind(name: &str, wishes: &Wishes) -> Result<Role, ValueError> {
    name.parse().map_err(|error: ValueError| {
        let spoken = wishes.spoken;
        let known = Role::ALL.map(|role| spoken.with("role", role.as_str()));
        ValueError {
            problem: format!("{} {}", spoken.name("role"), error.problem),
            hint: format!("type {}, {} or {}", known[0], known[1], known[2]),
        }
    })
}

/// Whoever types a role wants what the settings give it. Over the wire it also says which nodes may take the run, and
/// needs no settings.
fn role<'a>(
    role: Role,
    wishes: &Wishes,
    settings: &'a Effective,
) -> Result<Option<&'a RoleSettings>, ValueError> {
    let found = settings.settings.roles.of(role);
    match (found, wishes.spoken) {
        (Some(role), _) => Ok(Some(role)),
        (None, super::Spoken::Fields) => Ok(None),
        (None, super::Spoken::Flags) => Err(ValueError {
            problem: format!("--role {role}: the settings have no such role"),
            hint: format!(
                "add \"roles\": {{\"{role}\": {{\"agent\": \"codex\"}}}} to ~/.cofferdam/settings.json"
            ),
        }),
    }
}

type NamedAgent<'a> = (Provider, Option<(&'a AgentName, &'a AgentSettings)>);

/// An agent of the settings, or else one of the CLIs by any of its names.
fn agent<'a>(
    by: &str,
    name: &str,
    wishes: &Wishes,
    settings: &'a Effective,
) -> Result<NamedAgent<'a>, ValueError> {
    let agents = &settings.settings.agents;
    if let Some((name, agent)) = agents.get_key_value(name) {
        return Ok((agent.provider, Some((name, agent))));
    }
    let with = |name: &str| wishes.spoken.with("agent", name);
    let known: Vec<String> = agents.keys().map(|name| format!("{}, ", with(name.as_str()))).collect();
    name.parse().map(|provider| (provider, None)).map_err(|_| ValueError {
        problem: format!("{by} `{}` is not an agent", crate::egress::printable(name)),
        hint: format!(
            "type {}{}, {} or {}",
            known.concat(),
            with("claude_code"),
            with("codex"),
            with("opencode")
        ),
    })
}

fn policy<'a>(by: &str, name: &str, settings: &'a Effective) -> Result<&'a PolicySettings, ValueError> {
    let policies = &settings.settings.sandbox.policies;
    policies.get(name).ok_or_else(|| {
        let known: Vec<&str> = policies.keys().map(|name| name.as_str()).collect();
        let hint = match known.is_empty() {
            true => "add it to sandbox.policies in ~/.cofferdam/settings.json".to_owned(),
            false => format!("type one of: {}", known.join(", ")),
        };
        let name = crate::egress::printable(name);
        ValueError { problem: format!("{by} `{name}`: the settings have no such policy"), hint }
    })
}

/// The order of `docs/settings.md`.
fn mode(
    wishes: &Wishes,
    agent: Option<&AgentSettings>,
    policy: Option<&PolicySettings>,
    settings: &Effective,
) -> Asked<Mode> {
    if let Some(value) = wishes.mode {
        return Asked { value, by: wishes.spoken.name("mode") };
    }
    let of_policy = policy.and_then(|policy| policy.mode);
    let of_agent = agent.and_then(|agent| agent.sandbox_mode);
    match (&wishes.policy, of_policy, of_agent) {
        (Some(_), Some(value), _) => Asked { value, by: wishes.spoken.name("policy") },
        (_, _, Some(value)) => Asked { value, by: "the agent's sandbox_mode".to_owned() },
        (None, Some(value), None) => Asked { value, by: "the agent's policy".to_owned() },
        (_, None, None) => Asked { value: settings.settings.sandbox.mode, by: set_by(settings, "mode") },
    }
}

fn network(wishes: &Wishes, policy: Option<&PolicySettings>, settings: &Effective) -> Option<Asked<Network>> {
    if let Some(value) = wishes.network {
        return Some(Asked { value, by: wishes.spoken.name("network") });
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
    }
}
