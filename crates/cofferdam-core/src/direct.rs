//! What a direct run says to its model beside the words: how much to think.

use serde::{Deserialize, Serialize};

/// Whether the model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Thinking {
    /// The model decides how much.
    Adaptive,
    /// Up to so many tokens.
    Enabled {
        /// How many.
        budget_tokens: u32,
    },
    /// Not at all.
    Disabled,
}

/// How much effort the model is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// The least.
    Low,
    /// Less than the vendor's default.
    Medium,
    /// The vendor's default.
    High,
    /// More than the default.
    Xhigh,
    /// The most.
    Max,
}
