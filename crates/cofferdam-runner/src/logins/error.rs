//! Why a login opens nothing, and what to do about it.

use std::path::PathBuf;

use cofferdam_agent::{LoginProblem, profile};
use cofferdam_core::Agent;

/// Why there is no login that opens a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Nobody has logged in.
    #[error("nobody is logged in with {}", profile(*agent).title)]
    Missing {
        /// With which CLI.
        agent: Agent,
    },
    /// The token's time is over. The CLI itself renews it when it is used.
    #[error("the login of {} in {} has expired: {}", profile(*agent).title, path.display(), profile(*agent).login.renew)]
    Expired {
        /// Of which CLI.
        agent: Agent,
        /// In which file.
        path: PathBuf,
    },
    /// The file holds nothing that opens the model.
    #[error("the login of {} in {} cannot be used: {problem}", profile(*agent).title, path.display())]
    Unusable {
        /// Of which CLI.
        agent: Agent,
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: Problem,
    },
}

impl LoginError {
    /// What to type.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { agent } | Self::Unusable { agent, .. } => profile(*agent).login.log_in.to_owned(),
            Self::Expired { agent, .. } => profile(*agent).login.lasting.to_owned(),
        }
    }
}

/// What is wrong with a login file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It cannot be opened or read.
    #[error("it cannot be read ({0})")]
    Unreadable(String),
    /// A folder, a pipe, a device.
    #[error("it is not a file")]
    NotAFile,
    /// Larger than any login.
    #[error("it is larger than {} KiB", super::file::LARGEST >> 10)]
    TooLarge,
    /// Another user could have put a token of theirs into it, and would then see what is asked with it.
    #[error("another user can write it (type `chmod 600` on it)")]
    OthersWrite,
    /// It belongs to somebody else.
    #[error("it belongs to another user")]
    Foreign,
    /// What is in it cannot be used.
    #[error(transparent)]
    Content(#[from] LoginProblem),
}
