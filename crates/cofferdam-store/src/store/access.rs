//! Who may ask, and who has asked for what.

use cofferdam_core::KeyId;

use super::Store;
use crate::audit::{Audit, NewAudit};
use crate::error::Error;
use crate::key::{KeyRecord, NewKey};
use crate::stored::{require_text, without_nul};

impl Store {
    /// Keeps a new key.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn create_key(&self, key: &NewKey, now_ms: u64) -> Result<(), Error> {
        require_text("name of the key", &key.name)?;
        match self {
            Self::Sqlite(store) => store.create_key(key, now_ms).await,
            Self::Postgres(store) => store.create_key(key, now_ms).await,
        }
    }

    /// The key of this SHA-256, if there is one, also a revoked one.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn key_of(&self, sha256: &str) -> Result<Option<KeyRecord>, Error> {
        match self {
            Self::Sqlite(store) => store.key_of(sha256).await,
            Self::Postgres(store) => store.key_of(sha256).await,
        }
    }

    /// All keys, the oldest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn keys(&self) -> Result<Vec<KeyRecord>, Error> {
        match self {
            Self::Sqlite(store) => store.keys().await,
            Self::Postgres(store) => store.keys().await,
        }
    }

    /// Makes a key open nothing any more. False if there is none of this name.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn revoke_key(&self, id: &KeyId, now_ms: u64) -> Result<bool, Error> {
        match self {
            Self::Sqlite(store) => store.revoke_key(id, now_ms).await,
            Self::Postgres(store) => store.revoke_key(id, now_ms).await,
        }
    }

    /// Writes down that a key was used.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn use_key(&self, id: &KeyId, now_ms: u64) -> Result<(), Error> {
        match self {
            Self::Sqlite(store) => store.use_key(id, now_ms).await,
            Self::Postgres(store) => store.use_key(id, now_ms).await,
        }
    }

    /// Writes down a change.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn record_audit(&self, change: &NewAudit) -> Result<(), Error> {
        let change = &NewAudit {
            actor: without_nul(&change.actor).into_owned(),
            action: without_nul(&change.action).into_owned(),
            subject: without_nul(&change.subject).into_owned(),
            ..change.clone()
        };
        match self {
            Self::Sqlite(store) => store.record_audit(change).await,
            Self::Postgres(store) => store.record_audit(change).await,
        }
    }

    /// Changes before this number, the newest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn audit_before(&self, seq: u64, newest: u32) -> Result<Vec<Audit>, Error> {
        match self {
            Self::Sqlite(store) => store.audit_before(seq, newest).await,
            Self::Postgres(store) => store.audit_before(seq, newest).await,
        }
    }
}
