//! Files that attempts have left.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A file that an attempt has left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactResponse {
    /// The attempt's number.
    pub attempt: u32,
    /// What it is, such as `diff` or `transcript`.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// Where to get it, on this service.
    pub href: String,
}

/// The files of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactList {
    /// The files.
    pub artifacts: Vec<ArtifactResponse>,
}
