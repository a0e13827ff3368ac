//! What people and the guardian say to a live run.

use serde::{Deserialize, Serialize};

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

impl MessageKind {
    /// The name on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

fn unknown_kind(text: &str) -> UnknownMessageKind {
    UnknownMessageKind(text.to_owned())
}
