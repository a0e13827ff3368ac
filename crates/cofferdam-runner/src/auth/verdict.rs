//! What a check found out, before it is told.

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

    /// Its time was up.
    pub(super) fn timeout(started: bool, seconds: u64) -> Self {
        let message = format!("it did not answer within {seconds} s, and was ended");
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
