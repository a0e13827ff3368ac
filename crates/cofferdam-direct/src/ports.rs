//! What a conversation needs of the world, beside the model and the tools.

use async_trait::async_trait;
use cofferdam_core::{EventType, MessageKind};
use serde_json::Value;

use crate::turn::Turn;

/// Keeps what happened.
#[async_trait]
pub trait Journal: Send {
    /// Keeps all of an entry or nothing, and returns once it is durable. Only then is the next step taken.
    async fn record(&mut self, entry: Entry) -> Result<(), JournalError>;

    /// Shows a piece of a block that is not whole yet. It may be lost: the whole block is in the entry to come. A block
    /// that was shown in part is never said again in other words.
    fn show(&mut self, delta: Delta);
}

/// What happened in one step.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// The exact turns.
    pub turns: Vec<Turn>,
    /// The same for people, to be redacted: one event each.
    pub facts: Vec<Fact>,
    /// The messages that are part of the turns.
    pub delivered: Vec<Delivered>,
}

/// A message that the model is told with the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Its id.
    pub id: String,
    /// What it was taken as.
    pub kind: MessageKind,
    /// Which of the model's turns it came after; 0 before the first.
    pub turn: u32,
    /// What was said.
    pub text: String,
}

/// One event before it has a time and a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// What kind of fact it is.
    pub event_type: EventType,
    /// The fact. With `turn` and `index` where it is a block of a turn.
    pub data: Value,
}

/// A piece of a block, as it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Of what the model says.
    Text {
        /// Which of the model's turns, from 1.
        turn: u32,
        /// Which of the turn's blocks, from 0.
        index: u32,
        /// The piece.
        text: String,
    },
    /// Of what it thinks.
    Thinking {
        /// Which of the model's turns, from 1.
        turn: u32,
        /// Which of the turn's blocks, from 0.
        index: u32,
        /// The piece.
        text: String,
    },
}

/// An entry could not be kept. Nothing more is done then: a step that is on no record was not taken.
#[derive(Debug, thiserror::Error)]
#[error("failed to record a turn")]
pub struct JournalError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// What people say to the conversation.
#[async_trait]
pub trait Mail: Send {
    /// The messages that have not been delivered yet, oldest first. Looked at before each request to the model, and
    /// before the conversation ends. Taking them delivers nothing: that is [`Entry::delivered`].
    async fn waiting(&mut self) -> Vec<Said>;

    /// Returns once an interrupt waits, and never otherwise. It may be dropped and asked again.
    async fn interrupted(&mut self);
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its id.
    pub id: String,
    /// What it is to do.
    pub kind: MessageKind,
    /// What was said.
    pub content: String,
}
