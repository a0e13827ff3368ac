//! What was said, exactly.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::usage::Usage;

/// One turn of a conversation, in the very blocks that the model was sent or has answered. The model signs what it
/// thought, and refuses a conversation in which that was changed; so a turn is never redacted, cut or shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Turn {
    /// What the model was told: a prompt, a message, or what its tools gave.
    User {
        /// Content blocks.
        content: Vec<Value>,
        /// What the tools spent at a model of their own.
        #[serde(default, skip_serializing_if = "Usage::is_empty")]
        usage: Usage,
        /// Somebody interrupted the conversation here.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
    },
    /// What it answered.
    Assistant {
        /// The answer's id at the vendor.
        id: String,
        /// Content blocks.
        content: Vec<Value>,
        /// The model, as it names itself.
        model: String,
        /// Why it stopped.
        stop_reason: String,
        /// What the answer cost, in tokens.
        usage: Usage,
    },
}

impl Turn {
    /// A turn of the user that is text.
    #[must_use]
    pub fn prompt(text: &str) -> Self {
        Self::told(vec![json!({ "type": "text", "text": text })])
    }

    /// A turn of the user.
    pub(crate) fn told(content: Vec<Value>) -> Self {
        Self::User { content, usage: Usage::default(), interrupted: false }
    }

    /// Who said it, in the word of the API.
    #[must_use]
    pub fn role(&self) -> &'static str {
        match self {
            Self::User { .. } => "user",
            Self::Assistant { .. } => "assistant",
        }
    }

    /// Its blocks.
    #[must_use]
    pub fn content(&self) -> &[Value] {
        match self {
            Self::User { content, .. } | Self::Assistant { content, .. } => content,
        }
    }

    /// What it spent.
    #[must_use]
    pub fn usage(&self) -> Usage {
        match self {
            Self::User { usage, .. } | Self::Assistant { usage, .. } => *usage,
        }
    }

    /// What it says in text.
    pub(crate) fn text(&self) -> String {
        self.content().iter().filter_map(|block| block["text"].as_str()).collect()
    }

    /// Whether it says this and nothing else.
    pub(crate) fn is_only(&self, text: &str) -> bool {
        matches!(self.content(), [block] if block["text"] == text)
    }
}
