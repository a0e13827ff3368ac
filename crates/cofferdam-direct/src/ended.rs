//! How a conversation ended.

use cofferdam_core::ModelTrouble;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::usage::Usage;

/// How a conversation ended. Its last entry has the same as `agent.finished`.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// What it came to.
    pub report: Report,
    /// How the model failed, if that is why.
    pub trouble: Option<ModelTrouble>,
}

/// What a conversation came to: the fields of the agent SDK's `result` that the conversation itself knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// In which way it ended.
    pub subtype: Subtype,
    /// Whether it failed.
    pub is_error: bool,
    /// What the model said last.
    pub result: Option<String>,
    /// Why the model stopped, if it ever did.
    pub stop_reason: Option<String>,
    /// How many turns there were.
    pub num_turns: u32,
    /// What all turns cost together.
    pub usage: Usage,
    /// The tools that the model called and may not.
    pub permission_denials: Vec<Denial>,
    /// The result that meets the schema that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// What went wrong, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// The status with which the model's server failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
}

/// In which way a conversation ended, in the words of the agent SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subtype {
    /// The model said that it is done.
    Success,
    /// Something failed, or somebody interrupted it.
    ErrorDuringExecution,
    /// It took as many turns as it may.
    ErrorMaxTurns,
    /// It was asked for a result that meets a schema, and gave none.
    ErrorMaxStructuredOutputRetries,
}

/// A tool that the model called and may not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool.
    pub tool_name: String,
    /// Which call.
    pub tool_use_id: String,
    /// What the model wanted of it.
    pub tool_input: Value,
}
