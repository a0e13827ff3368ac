//! What a check says.

use cofferdam_core::{Environment, Mode};
use cofferdam_sandbox::RefusalKind;
use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// Whether an agent can work, and how that is known. Its JSON is what `cofferdam auth status --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthStatus {
    /// What the caller calls the agent.
    pub agent: String,
    /// Whether everything is there that it is started with: its CLI, and what its sandbox needs.
    pub available: bool,
    /// Whether a model answered it. What is not known is `false`.
    pub authenticated: bool,
    /// When that was found out: ISO 8601, UTC.
    pub checked_at: String,
    /// Where it was tried.
    pub execution_environment: Environment,
    /// The mode of that sandbox, or `host`.
    pub mode: Mode,
    /// The answer in one word.
    pub status: AuthWord,
    /// The same for people, with what to type.
    pub message: String,
}

/// The answer of a check in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum AuthWord {
    /// A model answered.
    Ok,
    /// The agent's CLI is not installed, not in the image, or cannot be started.
    CliMissing,
    /// There is no container engine and no container runtime.
    RuntimeMissing,
    /// There is one, and it does not answer this user.
    DaemonUnavailable,
    /// It has no such image.
    ImageMissing,
    /// The image cannot be used, or its name cannot be one.
    ImageInvalid,
    /// There is neither a key nor a login, or the model's server refused it.
    AuthRequired,
    /// It did not answer in time, and was ended.
    Timeout,
    /// Anything else.
    Unknown,
}

impl AuthWord {
    /// Every word.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The word itself.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl From<RefusalKind> for AuthWord {
    fn from(kind: RefusalKind) -> Self {
        match kind {
            RefusalKind::Policy => Self::Unknown,
            RefusalKind::RuntimeMissing => Self::RuntimeMissing,
            RefusalKind::DaemonUnavailable | RefusalKind::DaemonForbidden => Self::DaemonUnavailable,
            RefusalKind::ImageMissing => Self::ImageMissing,
            RefusalKind::ImageInvalid => Self::ImageInvalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_json_and_in_text() {
        for &word in AuthWord::ALL {
            assert_eq!(serde_json::to_value(word).unwrap(), word.as_str());
        }
    }

    #[test]
    fn a_refusal_of_the_policy_says_nothing_of_the_login() {
        assert_eq!(AuthWord::from(RefusalKind::Policy), AuthWord::Unknown);
    }
}
