//! Values that people type, and what they are told when one is wrong.

use crate::egress::printable;

/// Why a text is not the value that it should be. Whoever shows it puts the flag, the variable or the key in
/// front.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {hint}")]
pub struct ValueError {
    /// What is wrong, beginning with the text that was given.
    pub problem: String,
    /// What to type.
    pub hint: String,
}

impl ValueError {
    /// The text as it is, if it is right.
    pub(crate) fn unless(is_right: bool, text: &str, problem: &str, hint: &str) -> Result<String, Self> {
        match is_right {
            true => Ok(text.to_owned()),
            false => Err(Self::new(text, problem, hint)),
        }
    }

    /// What is wrong with a text, in words that follow it, and what to type instead.
    pub(crate) fn new(text: &str, problem: &str, hint: &str) -> Self {
        Self { problem: format!("`{}` {problem}", printable(text)), hint: hint.to_owned() }
    }
}
