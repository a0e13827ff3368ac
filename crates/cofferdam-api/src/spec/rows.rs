//! What phases brought, as rows.

use cofferdam_core::{SpecComponent, SpecId, SpecRequirement, SpecTask, SpecTicket};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::schema::SpecIdText;

/// The requirements of a spec. They are edited as the output of the phase `requirements`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpecRequirements {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// Whether the phase has passed.
    pub passed: bool,
    /// In the order of the output; empty before the phase was tried.
    pub requirements: Vec<SpecRequirement>,
}

/// The design of a spec. It is edited as the output of the phase `design`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpecDesign {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// Whether the phase has passed.
    pub passed: bool,
    /// Its components, in the order of the output; empty before the phase was tried.
    pub components: Vec<SpecComponent>,
    /// All of what the phase brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output: Option<Value>,
}

/// The tasks of a spec. They are edited as the output of the phase `tasks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpecTasks {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// Whether the phase has passed.
    pub passed: bool,
    /// What the tasks belong to.
    pub tickets: Vec<SpecTicket>,
    /// In the order of the output; empty before the phase was tried.
    pub tasks: Vec<SpecTask>,
}
