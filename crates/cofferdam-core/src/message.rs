//! What people and the guardian say to a live run, and what becomes of it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event::EventType;
use crate::text::named;

/// What a message does to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", parse_err_ty = UnknownMessageKind, parse_err_fn = unknown_kind)]
pub enum MessageKind {
    /// Reaches a busy agent before its next model call.
    Steer,
    /// A new turn after the present one.
    FollowUp,
    /// Ends the present turn.
    Interrupt,
}

/// A kind of message that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of message `{0}` (use `steer`, `follow_up` or `interrupt`)")]
pub struct UnknownMessageKind(String);

fn unknown_kind(text: &str) -> UnknownMessageKind {
    UnknownMessageKind(text.to_owned())
}

/// What became of a message: in the record, in its event, in a line of the worker, and what an agent's adapter says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// It reached the agent.
    Delivered {
        /// What the agent took it as, if that is known: a steer that came too late for its turn is the next one. The record
        /// does not keep it, the event does.
        taken_as: Option<String>,
    },
    /// It did not.
    Refused {
        /// Why: the name of a [`RefusalReason`], or what another version calls its own.
        reason: String,
    },
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum MessageState {
    /// It waits.
    Accepted,
    /// It reached the agent.
    Delivered,
    /// It did not.
    Refused,
}

/// Why a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RefusalReason {
    /// It came too late.
    RunEnded,
    /// It came too early.
    NotStarted,
    /// There is nothing to interrupt.
    NoTurn,
    /// The agent takes nothing during a turn.
    SteerNotSupported,
    /// It is no agent.
    NotSupported,
    /// The agent would not have it.
    AgentRefused,
    /// The agent leaves unread what was said before.
    AgentDoesNotRead,
    /// It is of a kind that the worker does not know.
    UnknownKind,
}

impl Receipt {
    /// The receipt of a message that never reaches the agent.
    #[must_use]
    pub fn refused(reason: RefusalReason) -> Self {
        Self::Refused { reason: reason.as_str().to_owned() }
    }

    /// What is said of the message now.
    #[must_use]
    pub fn state(&self) -> MessageState {
        match self {
            Self::Delivered { .. } => MessageState::Delivered,
            Self::Refused { .. } => MessageState::Refused,
        }
    }

    /// Why the message was refused, if it was.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Delivered { .. } => None,
            Self::Refused { reason } => Some(reason),
        }
    }

    /// The event that tells of it.
    #[must_use]
    pub fn event_type(&self) -> EventType {
        match self {
            Self::Delivered { .. } => EventType::MessageDelivered,
            Self::Refused { .. } => EventType::MessageRefused,
        }
    }

    /// What that event says.
    #[must_use]
    pub fn event_data(&self, id: impl Serialize) -> Value {
        match self {
            Self::Delivered { taken_as: None } => json!({ "id": id }),
            Self::Delivered { taken_as: Some(taken_as) } => json!({ "id": id, "as": taken_as }),
            Self::Refused { reason } => json!({ "id": id, "reason": reason }),
        }
    }

    /// The receipt that an event tells of, if it tells of one.
    #[must_use]
    pub fn of_event(event_type: EventType, data: &Value) -> Option<Self> {
        let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
        match event_type {
            EventType::MessageDelivered => Some(Self::Delivered { taken_as: text("as") }),
            EventType::MessageRefused => {
                Some(Self::Refused { reason: text("reason").unwrap_or_else(|| "no reason".to_owned()) })
            }
            _ => None,
        }
    }
}

/// A receipt, and the id under which the message was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageReceipt {
    /// Whose receipt it is.
    pub id: String,
    /// What became of the message.
    pub receipt: Receipt,
}

impl MessageReceipt {
    /// The agent has taken a message, as one of this kind.
    #[must_use]
    pub fn delivered(id: String, taken_as: MessageKind) -> Self {
        Self { id, receipt: Receipt::Delivered { taken_as: Some(taken_as.as_str().to_owned()) } }
    }

    /// The agent will never see a message.
    #[must_use]
    pub fn refused(id: String, reason: RefusalReason) -> Self {
        Self { id, receipt: Receipt::refused(reason) }
    }
}

named!(MessageKind, MessageState, RefusalReason);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_read_from_its_event_as_it_was_written() {
        let as_follow_up = MessageReceipt::delivered("m1".to_owned(), MessageKind::FollowUp).receipt;
        let refused = Receipt::refused(RefusalReason::AgentDoesNotRead);
        for receipt in [as_follow_up.clone(), Receipt::Delivered { taken_as: None }, refused.clone()] {
            let data = receipt.event_data("m1");
            assert_eq!(data["id"], "m1");
            assert_eq!(Receipt::of_event(receipt.event_type(), &data), Some(receipt));
        }
        assert_eq!(as_follow_up.event_data(7), json!({ "id": 7, "as": "follow_up" }));
        assert_eq!(refused.event_data(7), json!({ "id": 7, "reason": "agent_does_not_read" }));
        assert_eq!(Receipt::of_event(EventType::AgentMessage, &json!({ "id": 7 })), None);
    }

    #[test]
    fn a_reason_of_another_version_is_kept_as_it_is() {
        let told = Receipt::of_event(EventType::MessageRefused, &json!({ "reason": "too_long" })).unwrap();
        assert_eq!((told.state(), told.reason()), (MessageState::Refused, Some("too_long")));
        assert!("too_long".parse::<RefusalReason>().is_err());
        assert_eq!(RefusalReason::NoTurn.as_str().parse(), Ok(RefusalReason::NoTurn));
        for state in [MessageState::Accepted, MessageState::Delivered, MessageState::Refused] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
