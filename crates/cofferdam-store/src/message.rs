//! What people and the guardian send into a live run.

use std::fmt;
use std::str::FromStr;

use cofferdam_core::{EventType, MessageKind, NewEvent};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::stored::without_nul;

/// Why a message is refused that comes too late.
const RUN_ENDED: &str = "run_ended";

/// Names one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub(crate) i64);

impl MessageId {
    /// The number.
    #[must_use]
    pub fn number(self) -> i64 {
        self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MessageId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A message that waits for delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name.
    pub id: MessageId,
    /// What it does.
    pub kind: MessageKind,
    /// What is said.
    pub content: String,
    /// When it was accepted.
    pub created_at_ms: u64,
}

/// A message, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRecord {
    /// The message.
    pub message: Message,
    /// What became of it.
    pub state: ReceiptState,
    /// When that was decided.
    pub settled_at_ms: Option<u64>,
}

/// What became of a message, as it is on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptState {
    /// It waits.
    Accepted,
    /// It reached the agent.
    Delivered,
    /// It did not.
    Refused {
        /// Why.
        reason: String,
    },
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// It reached the agent.
    Delivered {
        /// What the agent took it as, if that is not what was sent: a steer that came too late for its turn is
        /// the next one.
        taken_as: Option<String>,
    },
    /// It did not.
    Refused {
        /// Why.
        reason: String,
    },
}

impl Receipt {
    /// The receipt of what can no longer be delivered.
    pub(crate) fn run_ended() -> Self {
        Self::Refused { reason: RUN_ENDED.to_owned() }
    }

    /// The state's name and the reason, as they are stored.
    pub(crate) fn stored(&self) -> (&'static str, Option<String>) {
        match self {
            Self::Delivered { .. } => ("delivered", None),
            Self::Refused { reason } => ("refused", Some(without_nul(reason).into_owned())),
        }
    }

    /// The event that tells of it.
    pub(crate) fn event(&self, id: MessageId, now_ms: u64) -> NewEvent {
        match self {
            Self::Delivered { taken_as } => {
                let mut data = json!({ "id": id });
                if let Some(taken_as) = taken_as {
                    data["as"] = json!(taken_as);
                }
                NewEvent::new(now_ms, EventType::MessageDelivered, data)
            }
            Self::Refused { reason } => {
                NewEvent::new(now_ms, EventType::MessageRefused, json!({ "id": id, "reason": reason }))
            }
        }
    }
}
