//! API keys, as they are on record: without the key.

use cofferdam_core::{KeyId, OwnerName, Scopes};

/// An API key on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its name for people and programs.
    pub id: KeyId,
    /// What it is for.
    pub name: String,
    /// Whom it acts for.
    pub owner: OwnerName,
    /// What it opens.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at_ms: u64,
    /// When it was last used, to the minute.
    pub used_at_ms: Option<u64>,
    /// When it was revoked; it opens nothing since.
    pub revoked_at_ms: Option<u64>,
}

/// A key that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Its name for people and programs.
    pub id: KeyId,
    /// What it is for.
    pub name: String,
    /// Whom it acts for. An owner outlives the keys that act for it.
    pub owner: OwnerName,
    /// The SHA-256 of the key, in hexadecimal. A key has 256 random bits, so that nothing slower is needed.
    pub sha256: String,
    /// What it opens.
    pub scopes: Scopes,
}
