//! What people and the guardian say to a live run.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

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
