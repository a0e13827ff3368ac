//! Messages into a live run, and their receipts.

use cofferdam_core::strict_json::present;
use cofferdam_core::{MessageKind, MessageState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What is said to a live agent. In place of `kind`, the words of other services are understood as `message_type`:
/// `user_message` is `follow_up`, `guardian_nudge` and `system` are `steer`, `interrupt` is itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Written")]
pub struct SendMessageRequest {
    /// What it does: `steer`, `follow_up` or `interrupt`.
    #[schema(value_type = String, pattern = "^(steer|follow_up|interrupt)$")]
    pub kind: MessageKind,
    /// What is said. An `interrupt` may say nothing.
    #[serde(default)]
    #[schema(max_length = 100_000, pattern = "^[^\\u0000]*$")]
    pub content: String,
}

/// The same as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, deserialize_with = "present")]
    kind: Option<MessageKind>,
    #[serde(default, deserialize_with = "present")]
    message_type: Option<MessageType>,
    #[serde(default)]
    content: String,
}

/// What a message does, in the words of other services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MessageType {
    UserMessage,
    Interrupt,
    GuardianNudge,
    System,
}

impl From<MessageType> for MessageKind {
    fn from(written: MessageType) -> Self {
        match written {
            MessageType::UserMessage => Self::FollowUp,
            MessageType::Interrupt => Self::Interrupt,
            // Whoever watches an agent means it to heed that now, and not after its turn.
            MessageType::GuardianNudge | MessageType::System => Self::Steer,
        }
    }
}

impl TryFrom<Written> for SendMessageRequest {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { kind, message_type, content } = written;
        match (kind, message_type) {
            (Some(kind), None) => Ok(Self { kind, content }),
            (None, Some(message_type)) => Ok(Self { kind: message_type.into(), content }),
            (Some(_), Some(_)) => Err("`kind` and `message_type` say the same; leave one of them out"),
            (None, None) => Err("missing field `kind`: use `steer`, `follow_up` or `interrupt`"),
        }
    }
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

/// A page of the messages into a run, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageList {
    /// The messages.
    pub messages: Vec<MessageResponse>,
    /// What to pass as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u64>,
}

/// Which messages to list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct MessagesQuery {
    /// Only messages after this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    pub after: Option<u64>,
    /// At most so many in one page; 500 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(text: Value) -> Result<MessageKind, String> {
        let read = serde_json::from_value::<SendMessageRequest>(text);
        read.map(|message| message.kind).map_err(|error| error.to_string())
    }

    #[test]
    fn the_words_of_other_services_are_understood() {
        for (written, kind) in [
            ("user_message", MessageKind::FollowUp),
            ("interrupt", MessageKind::Interrupt),
            ("guardian_nudge", MessageKind::Steer),
            ("system", MessageKind::Steer),
        ] {
            assert_eq!(read(json!({ "message_type": written, "content": "x" })), Ok(kind));
        }
        assert_eq!(read(json!({ "kind": "steer", "content": "x" })), Ok(MessageKind::Steer));
    }

    #[test]
    fn a_message_is_of_one_kind_in_one_word() {
        let both = json!({ "kind": "steer", "message_type": "system", "content": "x" });
        assert!(read(both).unwrap_err().contains("leave one of them out"));
        assert!(read(json!({ "content": "x" })).unwrap_err().contains("missing field `kind`"));
        for text in [
            json!({ "kind": "user_message", "content": "x" }),
            json!({ "message_type": "steer", "content": "x" }),
            json!({ "kind": null, "message_type": "system" }),
            json!({ "kind": "steer", "type": "system" }),
        ] {
            assert!(read(text.clone()).is_err(), "{text}");
        }
    }
}
