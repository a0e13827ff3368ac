//! Messages into a live run, and their receipts.

use cofferdam_core::{MessageKind, MessageState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is said to a live agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessageRequest {
    /// What it does: `steer`, `follow_up` or `interrupt`.
    #[schema(value_type = String, pattern = "^(steer|follow_up|interrupt)$")]
    pub kind: MessageKind,
    /// What is said. An `interrupt` may say nothing.
    #[serde(default)]
    #[schema(max_length = 100_000, pattern = "^[^\\u0000]*$")]
    pub content: String,
}

/// A message, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageResponse {
    /// Its number.
    pub id: i64,
    /// What it does.
    #[schema(value_type = String)]
    pub kind: MessageKind,
    /// What is said.
    pub content: String,
    /// What became of it.
    pub state: MessageState,
    /// Why it was refused, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was accepted.
    pub created_at_ms: u64,
    /// When it was delivered or refused.
    pub settled_at_ms: Option<u64>,
}

/// The messages into a run, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageList {
    /// The messages.
    pub messages: Vec<MessageResponse>,
}
