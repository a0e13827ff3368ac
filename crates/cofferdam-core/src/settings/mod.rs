//! What a person sets once for all runs, as it is written in `settings.json`.

mod agents;
mod amounts;
mod container_network;
mod engine_address;
mod runtime;
mod sandbox;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

pub use self::agents::{AgentName, AgentSettings, Provider};
pub use self::amounts::{Cpus, MemorySize, PidsLimit};
pub use self::container_network::ContainerNetwork;
pub use self::engine_address::EngineAddress;
pub use self::runtime::{OciRuntime, RuntimeCommand};
pub use self::sandbox::{AppleSettings, DockerSettings, SandboxSettings};
use crate::egress::AllowRule;

/// A value that is written as text: what `FromStr` refuses is refused when the settings are read.
macro_rules! written_as_text {
    ($($value:ty),*) => { $(
        impl TryFrom<String> for $value {
            type Error = $crate::ValueError;

            fn try_from(text: String) -> Result<Self, $crate::ValueError> {
                text.parse()
            }
        }

        impl From<$value> for String {
            fn from(value: $value) -> Self {
                value.to_string()
            }
        }
    )* };
}
use written_as_text;

/// The settings file. A key that is not known is an error: a misspelt wall would be no wall.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What sealed sandboxes may reach.
    pub egress: EgressSettings,
    /// How sandboxes are made.
    pub sandbox: SandboxSettings,
    /// Agents by name.
    pub agents: BTreeMap<AgentName, AgentSettings>,
    /// What models cost.
    pub prices: PriceSettings,
}

/// What sealed sandboxes may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressSettings {
    /// Allow-lists by name, for `--allow NAME`. One of a preset's name replaces the preset.
    pub sets: BTreeMap<String, Vec<AllowRule>>,
    /// Name servers, instead of the system's.
    pub name_servers: Vec<SocketAddr>,
}

/// What models cost, over the built-in table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriceSettings {
    /// When the prices were looked up, such as `2026-10-01`.
    pub as_of: Option<String>,
    /// By the beginning of the model's name; the longest beginning wins.
    pub models: BTreeMap<String, PriceSetting>,
}

/// In US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSetting {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the cache; as input without it.
    pub cache_read: Option<f64>,
    /// Input written to the cache; as input without it.
    pub cache_write: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_not_known_is_an_error() {
        let read = |text: &str| serde_json::from_str::<Settings>(text);
        assert!(read(r#"{"egress": {"sets": {"mine": ["a.example:443"]}}}"#).is_ok());
        assert!(read(r#"{"egres": {}}"#).unwrap_err().to_string().contains("egres"));
        assert!(read(r#"{"egress": {"sets": {"mine": ["a.example"]}}}"#).is_err(), "a rule needs its port");
    }
}
