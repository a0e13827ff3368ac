//! What `POST /execute/sdk` answers, and the frames of its stream.

mod conversation;

use cofferdam_core::{Delta, DeltaKind, EventType, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use self::conversation::{Conversation, Ending};
use crate::schema::{RequestIdText, RunIdText};

/// What came of a prompt that a model has answered, also if it did not get to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SdkResponse {
    /// Whether there is an answer.
    pub success: bool,
    /// The name of the request.
    #[schema(value_type = RequestIdText)]
    pub request_id: String,
    /// When this was answered, in UTC.
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// The answer; what was said last, if there is none.
    pub result: String,
    /// The whole conversation, as `claude-agent-sdk` shapes it: `system`, `assistant` and `user`, and one `result`.
    #[schema(value_type = Vec<Object>)]
    pub messages: Vec<Value>,
    /// Why there is no answer, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// More about it.
    pub metadata: SdkMetadata,
}

/// More about a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SdkMetadata {
    /// From acceptance to the end.
    pub execution_time_ms: u64,
    /// What was spent at the model, as far as prices are known.
    pub total_cost_usd: f64,
    /// How many answers the model gave.
    pub num_turns: u64,
    /// The model, as its vendor names it.
    pub model: String,
    /// What was used, as the model's server names it.
    #[schema(value_type = Object)]
    pub usage: Value,
    /// The run, for everything else that is known of it, and to go on with it (`options.resume`).
    #[schema(value_type = RunIdText)]
    pub run_id: RunId,
}

impl SdkResponse {
    /// From the conversation and what is known besides.
    #[must_use]
    pub fn of(conversation: &Conversation, ending: &Ending<'_>, request_id: &str, timestamp: String) -> Self {
        Self {
            success: ending.success,
            request_id: request_id.to_owned(),
            timestamp,
            result: conversation.result().unwrap_or_default().to_owned(),
            messages: conversation.messages(ending),
            error: ending.error.map(str::to_owned),
            metadata: SdkMetadata {
                execution_time_ms: ending.duration_ms,
                total_cost_usd: conversation::dollars(ending.cost_micro_usd),
                num_turns: conversation.num_turns(),
                model: conversation.model().unwrap_or(ending.model).to_owned(),
                usage: conversation.usage(),
                run_id: conversation.run().clone(),
            },
        }
    }
}

/// The first frame of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SdkStart {
    /// The run, to read the stream again from a later place.
    #[schema(value_type = RunIdText)]
    pub run_id: RunId,
    /// The name of the request.
    #[schema(value_type = RequestIdText)]
    pub request_id: String,
    /// The model, as its vendor names it.
    pub model: String,
}

/// The kinds of a stream's frames. Those of whole blocks have the number of their event as `id`.
pub mod frames {
    /// The first one: which run it is.
    pub const START: &str = "start";
    /// A piece of text.
    pub const TEXT_DELTA: &str = "text_delta";
    /// A piece of thought.
    pub const THINKING_DELTA: &str = "thinking_delta";
    /// A whole text.
    pub const TEXT: &str = "text";
    /// A whole thought.
    pub const THINKING: &str = "thinking";
    /// The model uses a tool.
    pub const TOOL_USE: &str = "tool_use";
    /// What the tool answered.
    pub const TOOL_RESULT: &str = "tool_result";
    /// What one call of the model used.
    pub const USAGE: &str = "usage";
    /// The last one: the same object as without a stream.
    pub const RESULT: &str = "result";
    /// The last one, where the same call without a stream would have been answered with this error.
    pub const ERROR: &str = "error";
}

/// The kind of the frame that an event becomes, if it says something of the answer.
#[must_use]
pub fn frame_of(event: EventType) -> Option<&'static str> {
    match event {
        EventType::AgentMessage => Some(frames::TEXT),
        EventType::AgentThinking => Some(frames::THINKING),
        EventType::AgentToolUse => Some(frames::TOOL_USE),
        EventType::AgentToolResult => Some(frames::TOOL_RESULT),
        EventType::AgentUsage => Some(frames::USAGE),
        _ => None,
    }
}

/// The kind of a delta's frame.
#[must_use]
pub fn delta_frame(delta: &Delta) -> &'static str {
    match delta.kind {
        DeltaKind::Text => frames::TEXT_DELTA,
        DeltaKind::Thinking => frames::THINKING_DELTA,
    }
}
