//! The answer of `POST /execute`.

use cofferdam_core::{Mode, RunId, RunState, SandboxId, Seal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::schema::{RequestIdText, RunIdText, SandboxIdText};

/// What came of a task whose agent had its chance, also if it failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecuteResponse {
    /// Whether the agent ended well.
    pub success: bool,
    /// The name of the request.
    #[schema(value_type = RequestIdText)]
    pub request_id: String,
    /// When this was answered, in UTC.
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// What the agent printed, or its end if that is long; all of it is an artifact.
    pub logs: String,
    /// What it changed, as git writes it; absent if it was not asked for or not collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Why it failed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// More about it.
    pub metadata: ExecuteMetadata,
}

/// More about a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecuteMetadata {
    /// From acceptance to the end.
    pub execution_time_ms: u64,
    /// The sandbox of the last attempt.
    #[schema(value_type = SandboxIdText)]
    pub sandbox_id: SandboxId,
    /// The run, for everything else that is known of it.
    #[schema(value_type = RunIdText)]
    pub run_id: RunId,
    /// Where it stands.
    #[schema(value_type = String, example = "succeeded")]
    pub state: RunState,
    /// The repository, as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The mode that was really used.
    #[schema(value_type = String, example = "native")]
    pub mode: Mode,
    /// How many attempts there were.
    pub attempts: u32,
    /// What was spent at the model.
    pub usage: Usage,
    /// The seal that was measured around the last attempt, if one was.
    #[schema(value_type = Option<Object>)]
    pub seal: Option<Seal>,
    /// How it ended.
    #[schema(value_type = Option<Object>)]
    pub outcome: Option<Value>,
    /// Whether the diff is longer than this answer may be: the artifact has all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diff_truncated: bool,
}

/// What was spent at the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Calls.
    pub model_calls: u64,
    /// Input and output tokens together.
    pub tokens: u64,
    /// In millionths of a US dollar, as far as prices are known.
    pub cost_micro_usd: u64,
}
