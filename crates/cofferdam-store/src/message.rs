//! What people and the guardian send into a live run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Names one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub(crate) i64);

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

/// What a message does to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl MessageKind {
    /// The name on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::FollowUp => "follow_up",
            Self::Interrupt => "interrupt",
        }
    }
}

impl FromStr for MessageKind {
    type Err = UnknownMessageKind;

    fn from_str(text: &str) -> Result<Self, UnknownMessageKind> {
        match text {
            "steer" => Ok(Self::Steer),
            "follow_up" => Ok(Self::FollowUp),
            "interrupt" => Ok(Self::Interrupt),
            _ => Err(UnknownMessageKind(text.to_owned())),
        }
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

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// It reached the agent.
    Delivered,
    /// It did not.
    Refused {
        /// Why.
        reason: String,
    },
}
