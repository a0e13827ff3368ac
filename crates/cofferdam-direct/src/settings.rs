//! How a conversation is to be led.

use cofferdam_core::{Effort, Thinking};
use serde_json::Value;

/// How a conversation is to be led.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The model's full name.
    pub model: String,
    /// The system prompt, whole: see [`system_prompt`].
    pub system: String,
    /// How many answers of the model there may be.
    pub max_turns: u32,
    /// How long one answer may be.
    pub max_output_tokens: u32,
    /// Whether it thinks; the vendor's default without one.
    pub thinking: Option<Thinking>,
    /// How much effort it makes; the vendor's default without one.
    pub effort: Option<Effort>,
    /// A JSON schema that the result must meet.
    pub output_schema: Option<Value>,
}

/// The system prompt: ours or what stands in its place, and what is added.
#[must_use]
pub fn system_prompt(in_place_of_ours: Option<&str>, added: Option<&str>) -> String {
    let base = in_place_of_ours.unwrap_or(include_str!("system_prompt.md")).trim_end();
    match added {
        Some(added) => format!("{base}\n\n{added}"),
        None => base.to_owned(),
    }
}
