//! What people and the guardian send into a live run.

use std::fmt;
use std::str::FromStr;

use cofferdam_core::{MessageKind, Receipt};
use serde::{Deserialize, Serialize};

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
    /// What became of it; `None` while it waits.
    pub receipt: Option<Receipt>,
    /// When that was decided.
    pub settled_at_ms: Option<u64>,
}
