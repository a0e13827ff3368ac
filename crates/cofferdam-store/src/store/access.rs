//! Who may ask.

use cofferdam_core::KeyId;
use cofferdam_mandate::Mandate;

use super::{Store, audit};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::key::{KeyRecord, NewKey};
use crate::session::{Row, values};
use crate::stored::{parse, require_text};

impl Store {
    /// Keeps a new key.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn create_key(&self, mandate: &Mandate, key: &NewKey) -> Result<(), Error> {
        require_text("name of the key", &key.name)?;
        let (mandate, key) = (mandate.clone(), key.clone());
        self.write(async move |session| {
            let NewKey { id, name, owner, sha256, scopes } = &key;
            session
                .execute(
                    "INSERT INTO keys (id, name, owner, sha256, scopes, created_at) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    values![id, name, owner, sha256, scopes.to_string(), mandate.at_ms()],
                )
                .await?;
            audit::record(session, &mandate).await
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
            "SELECT id, name, owner, scopes, created_at, used_at, revoked_at FROM keys WHERE sha256 = ?1";
        let sha256 = sha256.to_owned();
        self.read(async move |session| session.optional(SQL, values![&sha256], read_key).await).await
    }

    /// All keys, the oldest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn keys(&self) -> Result<Vec<KeyRecord>, Error> {
        const SQL: &str = "SELECT id, name, owner, scopes, created_at, used_at, revoked_at FROM keys \
                   ORDER BY created_at, id";
        self.read(async move |session| session.all(SQL, &[], read_key).await).await
    }

    /// Makes a key open nothing any more. False if there is none of this name.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn revoke_key(&self, mandate: &Mandate, id: &KeyId) -> Result<bool, Error> {
        let (mandate, id) = (mandate.clone(), id.clone());
        let is_there = self
            .write(async move |session| {
                session.may_repeat();
                let sql = "UPDATE keys SET revoked_at = ?1 WHERE id = ?2 AND revoked_at IS NULL";
                if session.execute(sql, values![mandate.at_ms(), &id]).await? > 0 {
                    audit::record(session, &mandate).await?;
                    return Ok(true);
                }
                let sql = "SELECT EXISTS (SELECT 1 FROM keys WHERE id = ?1)";
                session.one(sql, values![&id], |row| row.first()).await
            })
            .await?;
        failpoint("store.revoke_key");
        Ok(is_there)
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
}

fn read_key(row: Row<'_>) -> Result<KeyRecord, Error> {
    let id: String = row.get("id")?;
    Ok(KeyRecord {
        id: parse(&id, "key", &id)?,
        name: row.get("name")?,
        owner: row.parse(&id, "owner", "owner")?,
        scopes: row.parse(&id, "scopes", "scopes")?,
        created_at_ms: row.get("created_at")?,
        used_at_ms: row.get("used_at")?,
        revoked_at_ms: row.get("revoked_at")?,
    })
}
