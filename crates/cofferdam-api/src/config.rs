//! What may change while the service runs.

use std::collections::BTreeMap;

use cofferdam_core::ConfigReport;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigResponse {
    /// Each key that has a value. `docs/reference/config.md` has all of them.
    pub config: BTreeMap<String, String>,
    /// What it comes to.
    pub effective: EffectiveEnvironment,
    /// Where each value was set: `default`, `global`, `environment` or `system_config`.
    pub origins: BTreeMap<String, String>,
    /// What to know about it.
    pub warnings: Vec<String>,
    /// Who decides the mode of a run, the strongest first.
    pub precedence: Vec<String>,
}

/// Where runs are that say nothing about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveEnvironment {
    /// Their mode.
    pub mode: String,
    /// The same in the words of `LAUNCH_MODE`: `process` for `host`, `docker` for every sandbox.
    #[schema(pattern = "^(process|docker)$")]
    pub launch_mode: String,
}

/// What is to be changed, all of it or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeConfigRequest {
    /// Keys with their new values; `null` or an empty text unsets a key.
    pub updates: BTreeMap<String, Option<String>>,
    /// Change it although no node can use the mode.
    #[serde(default)]
    pub force: bool,
}

impl From<ConfigReport> for ConfigResponse {
    fn from(report: ConfigReport) -> Self {
        let ConfigReport { values, mode, launch_mode, warnings } = report;
        Self {
            origins: values.iter().map(|one| (one.key.to_owned(), one.origin.kind().to_owned())).collect(),
            config: values.into_iter().map(|one| (one.key.to_owned(), one.value)).collect(),
            effective: EffectiveEnvironment {
                mode: mode.to_string(),
                launch_mode: launch_mode.as_str().to_owned(),
            },
            warnings,
            precedence: ConfigReport::PRECEDENCE.map(str::to_owned).to_vec(),
        }
    }
}
