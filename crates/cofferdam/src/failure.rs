//! What the command line says when something went wrong: one line with the causes, one line with what to
//! do, and a documented exit code.

use std::error::Error;

use cofferdam_core::{InputError, InputSyntax, ValueError, with_causes};

use crate::exit::ExitCode;
use crate::sanitize;

/// A command that did not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ExitCode,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure in one sentence.
    pub(crate) fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// A failure of our own, with its causes.
    pub(crate) fn internal(attempted: &str, cause: &dyn Error) -> Self {
        Self::new(ExitCode::Internal, format!("{attempted}: {}", with_causes(cause)))
    }

    /// The same failure, with what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The exit code.
    pub(crate) fn code(&self) -> ExitCode {
        self.code
    }

    /// What went wrong, as it came.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The text for stderr. Names of files and the words of remote servers are in it, so it is cleaned.
    pub(crate) fn render(&self) -> String {
        let mut text = format!("error: {}\n", sanitize::line(&self.message));
        if let Some(hint) = &self.hint {
            text.push_str(&format!("hint: {}\n", sanitize::line(hint)));
        }
        text
    }
}

/// A command line that asks for something that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct UsageError {
    message: String,
    hint: String,
}

impl UsageError {
    /// What is wrong, and what to type instead.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl From<ValueError> for UsageError {
    fn from(error: ValueError) -> Self {
        Self::new(error.problem, error.hint)
    }
}

impl From<UsageError> for ValueError {
    fn from(error: UsageError) -> Self {
        Self { problem: error.message, hint: error.hint }
    }
}

impl From<InputError> for UsageError {
    fn from(error: InputError) -> Self {
        Self::new(error.shown(InputSyntax::Flags), error.hint)
    }
}

impl From<UsageError> for Failure {
    fn from(error: UsageError) -> Self {
        Self::new(ExitCode::Usage, error.message).hint(error.hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_and_its_hint_another() {
        let failure = Failure::new(ExitCode::Usage, "no\nsuch \x1b[31mthing").hint("type this");
        assert_eq!(failure.render(), "error: no such thing\nhint: type this\n");
    }
}
