//! Who changed what.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// A change that somebody made, or that was refused to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditResponse {
    /// Its number; they grow.
    pub seq: u64,
    /// When.
    pub at_ms: u64,
    /// Who: a key's id, `loopback` for somebody who needed none, `local` for somebody at the command line, or `role:NAME`.
    pub actor: String,
    /// Whether it was `done` or `refused`.
    #[schema(pattern = "^(done|refused)$")]
    pub outcome: String,
    /// How often: refusals are counted by actor, action and minute.
    pub count: u64,
    /// What, such as `run.create`.
    pub action: String,
    /// On what, such as a run's id; of refusals, on what the first one was.
    pub subject: String,
    /// More about it.
    #[schema(value_type = Object)]
    pub data: Value,
}

/// A page of changes, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The changes.
    pub changes: Vec<AuditResponse>,
    /// What to pass as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
}

/// Which changes to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Only changes before this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub before: Option<u64>,
    /// At most so many; 100 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
}
