//! What the settings say about this very run: its agent, role, policy and mode.

use cofferdam_core::{
    AgentSettings, Effective, Mode, Network, Origin, PolicySettings, Provider, Role, RoleSettings, ValueError,
};

use super::args::RunArgs;
use crate::failure::UsageError;

/// A value, and who asked for it, in words for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked<T> {
    /// The value.
    pub(crate) value: T,
    /// A flag, a key or a variable.
    pub(crate) by: String,
}

/// What was chosen by name.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    /// The CLI, if an agent was named.
    pub(crate) provider: Option<Provider>,
    /// The settings of that agent, if it is one of the settings.
    pub(crate) agent: Option<&'a AgentSettings>,
    /// The settings of the role.
    pub(crate) role: Option<&'a RoleSettings>,
    /// The policy.
    pub(crate) policy: Option<&'a PolicySettings>,
    /// The mode.
    pub(crate) mode: Asked<Mode>,
    /// The network, if anybody asked for one.
    pub(crate) network: Option<Asked<Network>>,
}

/// Finds what the flags name in the settings.
pub(crate) fn choose<'a>(args: &RunArgs, settings: &'a Effective) -> Result<Choice<'a>, UsageError> {
    let role = args.role.as_deref().map(|name| role(name, settings)).transpose()?;
    let named = match (&args.agent, role.and_then(|role| role.agent.as_ref())) {
        (Some(name), _) => Some(agent("--agent", name, settings)?),
        (None, Some(name)) => Some(agent("the agent of the role", name.as_str(), settings)?),
        (None, None) => None,
    };
    let (provider, agent) = named.unzip();
    let agent = agent.flatten();
    let own = agent.and_then(|agent| agent.policy.as_ref());
    let policy = match (&args.policy, own) {
        (Some(name), _) => Some(policy("--policy", name, settings)?),
        (None, Some(name)) => Some(policy("the policy of the agent", name.as_str(), settings)?),
        (None, None) => None,
    };
    Ok(Choice {
        provider,
        agent,
        role,
        policy,
        mode: mode(args, agent, policy, settings)?,
        network: network(args, policy, settings)?,
    })
}

fn role<'a>(name: &str, settings: &'a Effective) -> Result<&'a RoleSettings, UsageError> {
    let role: Role = name
        .parse()
        .map_err(|error: ValueError| UsageError::new(format!("--role {}", error.problem), error.hint))?;
    settings.settings.roles.of(role).ok_or_else(|| {
        UsageError::new(
            format!("--role {role}: the settings have no such role"),
            format!("add \"roles\": {{\"{role}\": {{\"agent\": \"codex\"}}}} to ~/.cofferdam/settings.json"),
        )
    })
}

/// An agent of the settings, or else one of the CLIs by any of its names.
fn agent<'a>(
    by: &str,
    name: &str,
    settings: &'a Effective,
) -> Result<(Provider, Option<&'a AgentSettings>), UsageError> {
    if let Some(agent) = settings.settings.agents.get(name) {
        return Ok((agent.provider, Some(agent)));
    }
    let known: Vec<String> =
        settings.settings.agents.keys().map(|name| format!("`--agent {name}`, ")).collect();
    name.parse().map(|provider| (provider, None)).map_err(|_| {
        UsageError::new(
            format!("{by} `{name}` is not an agent"),
            format!("type {}`--agent claude_code`, `--agent codex` or `--agent opencode`", known.concat()),
        )
    })
}

fn policy<'a>(by: &str, name: &str, settings: &'a Effective) -> Result<&'a PolicySettings, UsageError> {
    let policies = &settings.settings.sandbox.policies;
    policies.get(name).ok_or_else(|| {
        let known: Vec<&str> = policies.keys().map(|name| name.as_str()).collect();
        let hint = match known.is_empty() {
            true => "add it to sandbox.policies in ~/.cofferdam/settings.json".to_owned(),
            false => format!("type one of: {}", known.join(", ")),
        };
        UsageError::new(format!("{by} `{name}`: the settings have no such policy"), hint)
    })
}

/// The order of `docs/settings.md`.
fn mode(
    args: &RunArgs,
    agent: Option<&AgentSettings>,
    policy: Option<&PolicySettings>,
    settings: &Effective,
) -> Result<Asked<Mode>, UsageError> {
    if let Some(text) = &args.mode {
        let value = text.parse().map_err(|error: cofferdam_core::UnknownMode| {
            UsageError::new(error.to_string(), "type `--mode native`")
        })?;
        return Ok(Asked { value, by: "--mode".to_owned() });
    }
    let of_policy = policy.and_then(|policy| policy.mode);
    let of_agent = agent.and_then(|agent| agent.sandbox_mode);
    let chosen = match (&args.policy, of_policy, of_agent) {
        (Some(_), Some(mode), _) => Some((mode, "--policy")),
        (_, _, Some(mode)) => Some((mode, "the agent's sandbox_mode")),
        (None, Some(mode), None) => Some((mode, "the agent's policy")),
        (_, None, None) => None,
    };
    Ok(match chosen {
        Some((value, by)) => Asked { value, by: by.to_owned() },
        None => {
            let by = set_by(settings, "mode");
            Asked { value: settings.settings.sandbox.mode, by }
        }
    })
}

fn network(
    args: &RunArgs,
    policy: Option<&PolicySettings>,
    settings: &Effective,
) -> Result<Option<Asked<Network>>, UsageError> {
    if let Some(text) = &args.network {
        let value = text.parse().map_err(|error: cofferdam_core::UnknownNetwork| {
            UsageError::new(error.to_string(), "type `--network sealed`")
        })?;
        return Ok(Some(Asked { value, by: "--network".to_owned() }));
    }
    if let Some(value) = policy.and_then(|policy| policy.network) {
        return Ok(Some(Asked { value, by: "the policy".to_owned() }));
    }
    let set = settings.settings.sandbox.network;
    Ok(set.map(|value| Asked { value, by: set_by(settings, "network") }))
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
