//! What a person sets once for all runs, as it is written in `settings.json`.

mod agents;
mod amounts;
mod artifacts;
mod container_network;
mod edit;
mod engine_address;
mod forwards;
mod git;
mod import;
mod key_path;
mod layers;
mod limits;
mod located;
mod models;
mod names;
mod nearest;
mod read;
mod reference;
mod retention;
mod roles;
mod runtime;
mod sandbox;
mod schema;
mod service;
mod specs;
mod store;
mod store_url;
mod tools;
mod untrusted;
#[cfg(test)]
mod value_table;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::agents::{Agent, AgentName, AgentSettings};
pub use self::amounts::{
    Count, Cpus, DiskSize, MaxAttempts, MaxConcurrency, MemorySize, OpenFiles, OutputSize, PidsLimit, Size,
    TimeoutSeconds,
};
pub use self::artifacts::{ArtifactEndpoint, ArtifactRegion, ArtifactSettings, ArtifactUrl};
pub use self::container_network::ContainerNetwork;
pub use self::edit::{Added, add_agent, add_setting, set_mode};
pub use self::engine_address::EngineAddress;
pub use self::forwards::{ForwardName, ForwardPort, ForwardSettings};
pub use self::git::{GitCredentialSettings, GitHost, GitPath, GitScope, GitSettings, TokenVariable};
pub use self::import::{Imported, LeftOut, import};
pub use self::key_path::KeyPath;
pub use self::layers::{Effective, Layer, Origin};
pub use self::limits::{LimitOverrides, LimitSettings, PolicySettings};
pub use self::models::{ModelAlias, ModelName, ModelSettings};
pub(crate) use self::names::is_name;
pub use self::names::{AllowEntry, FilePattern, PolicyName, VariableName};
pub(crate) use self::nearest::nearest;
pub use self::read::{SettingsError, read_layer};
pub use self::reference::reference;
pub use self::retention::{RetentionDays, RetentionSettings, RetentionSize};
pub use self::roles::{Role, RoleSettings, RolesSettings};
pub use self::runtime::{OciRuntime, RuntimeCommand};
pub use self::sandbox::{
    AppleSettings, DockerSettings, MaskSettings, NativeSettings, SandboxSettings, Storage,
};
pub use self::schema::schema;
pub use self::service::{
    AllowedHost, AllowedMode, AllowedRoot, BranchPattern, Capacity, DrainSeconds, ExecutionTimeMs, PublicUrl,
    RepoPattern, ServiceSettings, WebOrigin,
};
pub use self::specs::{ApprovalsBy, PhaseSettings, PhaseTurns, PhasesSettings, SpecSettings};
pub use self::store::{StoreConnections, StorePooler, StoreSettings};
pub use self::store_url::StoreUrl;
pub use self::tools::{SearchEndpoint, ToolSettings, WebFetchSettings, WebSearch};
pub use self::untrusted::{Refused, tighten};
use crate::egress::AllowRule;

/// The settings of Cofferdam. A key that is not known is an error: a misspelt wall would be no wall.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where the schema of this file is, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// What sealed sandboxes may reach.
    pub egress: EgressSettings,
    /// Git hosts, and what opens them.
    pub git: GitSettings,
    /// How sandboxes are made.
    pub sandbox: SandboxSettings,
    /// Agents by name, for `--agent NAME`.
    pub agents: BTreeMap<AgentName, AgentSettings>,
    /// Who does which kind of work, for `--role`.
    pub roles: RolesSettings,
    /// The service: `cofferdam serve` and `cofferdam work`.
    pub service: ServiceSettings,
    /// The record of runs.
    pub store: StoreSettings,
    /// The files that runs leave.
    pub artifacts: ArtifactSettings,
    /// How long is kept what runs leave, what was fetched for them, and the audit; 0 days are `forever`.
    pub retention: RetentionSettings,
    /// Short names of models.
    pub models: ModelSettings,
    /// What models cost.
    pub prices: PriceSettings,
    /// The tools of direct runs.
    pub tools: ToolSettings,
    /// How specs are worked on, phase by phase.
    pub specs: SpecSettings,
}

/// What sealed sandboxes may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EgressSettings {
    /// Allow-lists by name, for `--allow NAME`. One of a preset's name replaces the preset.
    pub sets: BTreeMap<String, Vec<AllowRule>>,
    /// Name servers, instead of the system's.
    pub name_servers: Vec<SocketAddr>,
}

/// What models cost, over the built-in table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PriceSettings {
    /// When the prices were looked up, such as `2026-10-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// By the beginning of the model's name; the longest beginning wins.
    pub models: BTreeMap<String, PriceSetting>,
}

/// In US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceSetting {
    /// Input.
    #[serde(deserialize_with = "amount")]
    pub input: f64,
    /// Output.
    #[serde(deserialize_with = "amount")]
    pub output: f64,
    /// Input read from the cache; as input without it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_amount")]
    pub cache_read: Option<f64>,
    /// Input written to the cache; as input without it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_amount")]
    pub cache_write: Option<f64>,
}

/// A price below nothing would let a budget grow by spending it.
fn amount<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let dollars = f64::deserialize(deserializer)?;
    match dollars.is_finite() && dollars >= 0.0 {
        true => Ok(dollars),
        false => Err(serde::de::Error::custom(format!(
            "`{dollars}` is not a price; type US dollars for a million tokens, such as 2.5"
        ))),
    }
}

fn some_amount<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    amount(deserializer).map(Some)
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
