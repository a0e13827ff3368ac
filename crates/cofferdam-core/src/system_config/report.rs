//! What is in force, for whoever asks.

use super::keys::DOCKER_NETWORK;
use super::{CONFIG_KEYS, ConfigKey, Sets, SystemConfig, in_force};
use crate::policy::{Mode, Network};
use crate::settings::{Effective, Origin};
use crate::text::named;

/// What is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigReport {
    /// Each key that has a value.
    pub values: Vec<ConfigValue>,
    /// The mode of runs that say nothing about it.
    pub mode: Mode,
    /// The same in the words of `LAUNCH_MODE`.
    pub launch_mode: LaunchMode,
    /// What people should know about it.
    pub warnings: Vec<String>,
}

/// A key with what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigValue {
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// Who set it.
    pub origin: Origin,
}

/// How agents are launched, as `LAUNCH_MODE` has it: `docker` stands for every sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LaunchMode {
    /// As processes of the host.
    Process,
    /// In sandboxes.
    Docker,
}

impl LaunchMode {
    /// How runs of a mode are launched.
    #[must_use]
    pub fn of(mode: Mode) -> Self {
        if mode.is_sandboxed() { Self::Docker } else { Self::Process }
    }
}

impl ConfigReport {
    /// Who decides the mode of a run, the strongest first.
    pub const PRECEDENCE: [&str; 6] = [
        "the request's own mode",
        "the agent's `sandbox_mode`",
        "`system_config`",
        "the service's variables",
        "its `settings.json`",
        "the default",
    ];
}

impl SystemConfig {
    /// What is in force with this over the service's own settings.
    #[must_use]
    pub fn report(&self, below: &Effective) -> ConfigReport {
        let effective = self.over(below);
        let mode = effective.settings.sandbox.mode;
        let value = |key: &'static ConfigKey| {
            let (value, origin) = match (key.sets, key.path()) {
                (Sets::Environment, Some(path)) => {
                    let word = if mode.is_sandboxed() { "sandbox" } else { "host" };
                    (word.to_owned(), effective.origin_of(path).clone())
                }
                // What the environment makes of it is told apart from these: it is the mode in force.
                (Sets::SealedMode | Sets::Folder, _) | (_, None) => {
                    (self.get(key.name)?.to_owned(), Origin::SystemConfig(key.name))
                }
                (Sets::Setting(_) | Sets::RoleAgent(_), Some(path)) => {
                    (in_force(&effective, path)?, effective.origin_of(path).clone())
                }
            };
            Some(ConfigValue { key: key.name, value, origin })
        };
        let values = CONFIG_KEYS.iter().filter_map(value).collect();
        let warnings = self.warnings(&effective);
        ConfigReport { values, mode, launch_mode: LaunchMode::of(mode), warnings }
    }

    fn warnings(&self, effective: &Effective) -> Vec<String> {
        let settings = &effective.settings;
        let mut warnings = Vec::new();
        if settings.sandbox.mode == Mode::Host {
            warnings.push(
                "runs have no walls: an agent can do everything that the service's user can".to_owned(),
            );
            if !settings.service.allows_mode(Mode::Host, Network::Open) {
                warnings.push(
                    "keys without the scope `system` are refused runs in mode `host` until `service.allowed_modes` \
                     has `host:open`"
                        .to_owned(),
                );
            }
        }
        if self.get(DOCKER_NETWORK).is_some() {
            warnings.push(format!(
                "{DOCKER_NETWORK} concerns runs with network `open` alone; sealed containers have no network"
            ));
        }
        let own = settings.agents.iter().filter_map(|(name, agent)| Some((name, agent.sandbox_mode?)));
        for (name, mode) in own.filter(|(_, mode)| *mode != settings.sandbox.mode) {
            warnings.push(format!("the agent `{name}` runs in `{mode}`, as its own `sandbox_mode` says"));
        }
        warnings
    }
}

named!(LaunchMode);
