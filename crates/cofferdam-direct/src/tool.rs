//! What the model may use.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::usage::Usage;

/// A tool of ours. It only reads: after a crash it is called again.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name, as the model calls it.
    fn name(&self) -> &str;

    /// What the model is told of it: `name`, `description` and `input_schema`.
    fn definition(&self) -> Value;

    /// Answers one call. The input is whatever the model wrote, and may not be what the schema asks for. Several calls
    /// run at once. Dropping the future ends the call.
    async fn call(&self, input: Value) -> ToolResult;
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Content blocks for the model.
    pub content: Vec<Value>,
    /// Whether it failed. The model reads why, and goes on.
    pub is_error: bool,
    /// What the tool spent at a model of its own.
    pub usage: Usage,
}

impl ToolResult {
    /// An answer in text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let content = vec![json!({ "type": "text", "text": text.into() })];
        Self { content, is_error: false, usage: Usage::default() }
    }

    /// A failure, told to the model.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }
}

/// The tools of one conversation.
#[derive(Clone, Default)]
pub struct Tools {
    /// Ours, which are called here.
    pub own: Vec<Arc<dyn Tool>>,
    /// Definitions of the vendor's, which are never called here: the answer has their results.
    pub of_vendor: Vec<Value>,
    /// Names of tools that exist and that this conversation may not use. A call is a denial; a call of any other name
    /// is a mistake of the model's.
    pub forbidden: Vec<String>,
}
