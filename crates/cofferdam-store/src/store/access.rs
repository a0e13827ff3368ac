//! Who may ask, and who has asked for what.

use cofferdam_core::KeyId;

use super::Store;
use crate::audit::{Audit, NewAudit};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::key::{KeyRecord, NewKey};
use crate::session::{Row, values};
use crate::stored::{parse, require_text, to_json, without_nul};

impl Store {
    /// Keeps a new key.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn create_key(&self, key: &NewKey, now_ms: u64) -> Result<(), Error> {
        require_text("name of the key", &key.name)?;
        let key = key.clone();
        self.write(async move |session| {
            session
                .execute(
                    "INSERT INTO keys (id, name, sha256, scopes, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                    values![&key.id, &key.name, &key.sha256, key.scopes.to_string(), now_ms],
                )
                .await
        })
        .await?;
        failpoint("store.create_key");
        Ok(())
    }

    /// The key of this SHA-256, if there is one, also a revoked one.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn key_of(&self, sha256: &str) -> Result<Option<KeyRecord>, Error> {
        const SQL: &str =
            "SELECT id, name, scopes, created_at, used_at, revoked_at FROM keys WHERE sha256 = ?1";
        let sha256 = sha256.to_owned();
        self.read(async move |session| session.optional(SQL, values![&sha256], read_key).await).await
    }

    /// All keys, the oldest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn keys(&self) -> Result<Vec<KeyRecord>, Error> {
        const SQL: &str =
            "SELECT id, name, scopes, created_at, used_at, revoked_at FROM keys ORDER BY created_at, id";
        self.read(async move |session| session.all(SQL, &[], read_key).await).await
    }

    /// Makes a key open nothing any more. False if there is none of this name.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn revoke_key(&self, id: &KeyId, now_ms: u64) -> Result<bool, Error> {
        let id = id.clone();
        let revoked = self
            .write(async move |session| {
                session.may_repeat();
                let sql = "UPDATE keys SET revoked_at = coalesce(revoked_at, ?1) WHERE id = ?2";
                session.execute(sql, values![now_ms, &id]).await
            })
            .await?;
        failpoint("store.revoke_key");
        Ok(revoked > 0)
    }

    /// Writes down that a key was used.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn use_key(&self, id: &KeyId, now_ms: u64) -> Result<(), Error> {
        let id = id.clone();
        self.write_ledger(async move |session| {
            session.may_repeat();
            session.execute("UPDATE keys SET used_at = ?1 WHERE id = ?2", values![now_ms, &id]).await
        })
        .await?;
        Ok(())
    }

    /// Writes down a change.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn record_audit(&self, change: &NewAudit) -> Result<(), Error> {
        let change = change.clone();
        self.write(async move |session| {
            let NewAudit { at_ms, actor, action, subject, data } = &change;
            session
                .execute(
                    "INSERT INTO audit (at, actor, action, subject, data) VALUES (?1, ?2, ?3, ?4, ?5)",
                    values![
                        *at_ms,
                        without_nul(actor),
                        without_nul(action),
                        without_nul(subject),
                        to_json(data)
                    ],
                )
                .await
        })
        .await?;
        failpoint("store.record_audit");
        Ok(())
    }

    /// Changes before this number, the newest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn audit_before(&self, seq: u64, newest: u32) -> Result<Vec<Audit>, Error> {
        const SQL: &str = "SELECT seq, at, actor, action, subject, data FROM audit WHERE seq < ?1 \
                   ORDER BY seq DESC LIMIT ?2";
        self.read(async move |session| {
            session
                .all(SQL, values![seq, newest], |row| {
                    let change = NewAudit {
                        at_ms: row.get("at")?,
                        actor: row.get("actor")?,
                        action: row.get("action")?,
                        subject: row.get("subject")?,
                        data: row.json("", "audit data", "data")?,
                    };
                    Ok(Audit { seq: row.get("seq")?, change })
                })
                .await
        })
        .await
    }
}

fn read_key(row: Row<'_>) -> Result<KeyRecord, Error> {
    let id: String = row.get("id")?;
    Ok(KeyRecord {
        id: parse(&id, "key", &id)?,
        name: row.get("name")?,
        scopes: row.parse(&id, "scopes", "scopes")?,
        created_at_ms: row.get("created_at")?,
        used_at_ms: row.get("used_at")?,
        revoked_at_ms: row.get("revoked_at")?,
    })
}
