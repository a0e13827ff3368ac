//! What nodes find out for somebody who is not on their machine.

use cofferdam_core::NodeId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::schema::NodeIdText;

/// Whether an agent could work now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthStatusResponse {
    /// Which agent.
    pub agent: String,
    /// Whether everything is there that it is started with: its CLI, and what its sandbox needs.
    pub available: bool,
    /// Whether a model answered it. What is not known is `false`.
    pub authenticated: bool,
    /// When that was found out: ISO 8601, UTC.
    pub checked_at: String,
    /// Where it was tried: `host` or `sandbox`.
    pub execution_environment: String,
    /// The mode of that sandbox, or `host`.
    pub mode: String,
    /// The answer in one word, such as `ok`, `auth_required` or `daemon_unavailable`; docs/troubleshooting.md has all.
    pub status: String,
    /// The same for people, with what to type.
    pub message: String,
}

/// Where an agent is tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AuthQuery {
    /// `host` or `sandbox`; without it where runs of the service are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^(host|sandbox)$")]
    pub environment: Option<String>,
}

/// What every node can enforce.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DoctorResponse {
    /// The nodes that were asked.
    pub nodes: Vec<NodeDoctor>,
}

/// What one node can enforce.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeDoctor {
    /// Its id.
    #[schema(value_type = NodeIdText)]
    pub id: NodeId,
    /// What people call it.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// `ok`, or `unavailable` if it did not answer in time.
    #[schema(pattern = "^(ok|unavailable)$")]
    pub status: String,
    /// What `cofferdam sandbox doctor --json` prints there: `mode`, `would_start` and `findings`, each with what to type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub report: Option<Value>,
}

/// Which sandbox is tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DoctorQuery {
    /// `native`, `docker` or `apple`; without it that of the service's runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^(native|docker|apple)$")]
    pub mode: Option<String>,
}
