//! What of repositories is trusted on the service's machine.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What of repositories is trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrustList {
    /// Settings files, by path and content.
    pub files: Vec<TrustedFileResponse>,
    /// Where repositories come from: git tokens open it.
    pub origins: Vec<TrustedOriginResponse>,
}

/// A settings file that was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrustedFileResponse {
    /// The file.
    pub path: String,
    /// The SHA-256 of what was trusted.
    pub sha256: String,
    /// When.
    pub trusted_at_ms: u64,
    /// Whether it still is what was trusted.
    pub state: TrustState,
}

/// The `origin` of a repository that was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrustedOriginResponse {
    /// The repository.
    pub path: String,
    /// The address.
    pub origin: String,
    /// When.
    pub trusted_at_ms: u64,
    /// Whether it still is what was trusted.
    pub state: TrustState,
}

/// Whether something still is what was trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TrustState {
    /// It is.
    Trusted,
    /// It was changed, and is not trusted any more.
    Changed,
    /// It is gone.
    Missing,
}

impl TrustState {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
