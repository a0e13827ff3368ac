//! Whether the service is well.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer of `GET /health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthResponse {
    /// Whether it is well.
    pub status: HealthStatus,
    /// Always `cofferdam`.
    pub service: String,
    /// When this was answered, in UTC.
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// The version of the service.
    pub version: String,
    /// What is wrong, if it is not well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// Whether the service is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// It is.
    Healthy,
    /// It answers, and something that it needs is missing.
    Degraded,
}

/// The answer of `GET /health/ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadyResponse {
    /// Whether new work is taken.
    pub ready: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}
