//! What a check found out, before it is told.

use std::time::Duration;

use super::status::AuthWord;

/// What a check found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) word: AuthWord,
    /// Whether the agent's own process was seen to start.
    pub(super) started: bool,
    pub(super) message: String,
}

impl Verdict {
    /// Before anything was started.
    pub(super) fn early(word: AuthWord, message: impl Into<String>) -> Self {
        Self { word, started: false, message: message.into() }
    }

    /// After the agent was started.
    pub(super) fn late(word: AuthWord, message: impl Into<String>) -> Self {
        Self { word, started: true, message: message.into() }
    }

    /// It timed out.
    pub(super) fn timeout(started: bool, timeout: Duration) -> Self {
        let message = format!("it did not answer within {} s, and was ended", timeout.as_secs_f64());
        Self { word: AuthWord::Timeout, started, message }
    }

    /// Whether everything is there that the agent is started with.
    pub(super) fn is_available(&self) -> bool {
        match self.word {
            AuthWord::Ok | AuthWord::AuthRequired => true,
            AuthWord::Timeout | AuthWord::Unknown => self.started,
            AuthWord::CliMissing
            | AuthWord::RuntimeMissing
            | AuthWord::DaemonUnavailable
            | AuthWord::ImageMissing
            | AuthWord::ImageInvalid => false,
        }
    }
}
