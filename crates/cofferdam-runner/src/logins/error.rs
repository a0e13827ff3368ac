//! Why a login opens nothing, and what to do about it.

use std::path::PathBuf;

use cofferdam_agent::profile;
use cofferdam_core::Agent;

use super::file::Problem;

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
