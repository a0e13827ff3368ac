//! What comes of executing a spec, and of deciding about it.

use cofferdam_core::{Gate, Phase, RunId, SandboxId, SpecId, SpecStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::{RunIdText, SandboxIdText, SpecIdText};

/// A spec that is executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecuteSpecResponse {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// Whether this call started it.
    pub status: ExecuteSpecStatus,
    /// The same for people.
    pub message: String,
    /// The sandbox that works on it, or will.
    #[schema(value_type = SandboxIdText)]
    pub sandbox_id: SandboxId,
    /// The run.
    #[schema(value_type = RunIdText)]
    pub run_id: RunId,
    /// The phase that it is at; absent if the run has passed them all meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_phase: Option<Phase>,
    /// What the caller is to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Whether a call started a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecuteSpecStatus {
    /// It did.
    Started,
    /// A run was under way.
    AlreadyRunning,
}

/// A spec that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaunchSpecResponse {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// Whether it is executed.
    pub status: LaunchSpecStatus,
    /// The same for people.
    pub message: String,
    /// The phase that it begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_phase: Option<Phase>,
    /// The sandbox that works on it, or will; absent if it is not executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SandboxIdText>)]
    pub sandbox_id: Option<SandboxId>,
    /// The run; absent if it is not executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunIdText>)]
    pub run_id: Option<RunId>,
    /// What the caller is to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Whether a spec that was made is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LaunchSpecStatus {
    /// It waits for somebody to execute it.
    Created,
    /// It is.
    Executing,
}

/// What came of a decision about a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecideSpecResponse {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// How it stands now.
    pub status: SpecStatus,
    /// The phase that was decided about.
    pub phase: Phase,
    /// The run that goes on with it; absent if nothing is left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunIdText>)]
    pub run_id: Option<RunId>,
    /// The sandbox that works on it, or will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SandboxIdText>)]
    pub sandbox_id: Option<SandboxId>,
    /// The phase that it is at; absent once all have passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_phase: Option<Phase>,
}

/// What came of a cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelSpecResponse {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// How it stands now.
    pub status: SpecStatus,
    /// The run that was asked to end; absent if none was under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunIdText>)]
    pub run_id: Option<RunId>,
    /// Whether anything was asked for.
    pub requested: bool,
}

/// What the gate of a phase says of an output that a person wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WritePhaseResponse {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// The phase.
    pub phase: Phase,
    /// The version of the spec that it is.
    pub version: u32,
    /// What its gate says.
    pub gate: Gate,
}
