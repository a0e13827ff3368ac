//! Adding to what a live run may reach.

use cofferdam_core::{AllowRule, RunId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::{AllowText, RunIdText};

/// What a live, sealed run may reach besides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AllowRequest {
    /// HOST:PORT, or names of sets such as `npm`.
    #[schema(value_type = Vec<AllowText>, min_items = 1, max_items = 100)]
    pub allow: Vec<String>,
}

/// What was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllowResponse {
    /// The run.
    #[schema(value_type = RunIdText)]
    pub id: RunId,
    /// The rules that it did not have before.
    #[schema(value_type = Vec<String>)]
    pub added: Vec<AllowRule>,
}
