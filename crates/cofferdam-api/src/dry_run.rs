//! The answer to a request that is only to be judged.

use cofferdam_core::RunRequest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::execute::ExecuteResponse;

/// What would be run. Nothing was started, and nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DryRunResponse {
    /// Always `true`.
    pub dry_run: bool,
    /// What was asked, as it was understood, with the policy that it would have.
    #[schema(value_type = Object)]
    pub request: RunRequest,
}

/// What `POST /execute` answers with 200.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ExecuteAnswer {
    /// The task was done.
    Executed(Box<ExecuteResponse>),
    /// It was only judged: `dry_run` was set.
    DryRun(Box<DryRunResponse>),
}
