//! API keys.

use cofferdam_core::KeyId;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{Postgres, int, number, parse, some_number};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::key::{KeyRecord, NewKey};

const KEYS: &str = "SELECT id, name, scopes, created_at, used_at, revoked_at FROM keys \
                    WHERE $1::text IS NULL OR sha256 = $1 ORDER BY created_at, id";

impl Postgres {
    pub(crate) async fn create_key(&self, key: &NewKey, now_ms: u64) -> Result<(), Error> {
        self.write(|mut session| async move {
            session
                .query("INSERT INTO keys (id, name, sha256, scopes, created_at) VALUES ($1, $2, $3, $4, $5)")
                .bind(key.id.as_str())
                .bind(&key.name)
                .bind(&key.sha256)
                .bind(key.scopes.to_string())
                .bind(int(now_ms))
                .execute(session.connection())
                .await?;
            session.done(())
        })
        .await?;
        failpoint("store.create_key");
        Ok(())
    }

    pub(crate) async fn key_of(&self, sha256: &str) -> Result<Option<KeyRecord>, Error> {
        let row = self
            .read(|mut session| async move {
                Ok(session.query(KEYS).bind(sha256).fetch_optional(session.connection()).await?)
            })
            .await?;
        row.as_ref().map(read_key).transpose()
    }

    pub(crate) async fn keys(&self) -> Result<Vec<KeyRecord>, Error> {
        let rows = self
            .read(|mut session| async move {
                Ok(session.query(KEYS).bind(None::<&str>).fetch_all(session.connection()).await?)
            })
            .await?;
        rows.iter().map(read_key).collect()
    }

    pub(crate) async fn revoke_key(&self, id: &KeyId, now_ms: u64) -> Result<bool, Error> {
        let revoked = self
            .write(|mut session| async move {
                session.may_repeat();
                let revoked = session
                    .query("UPDATE keys SET revoked_at = coalesce(revoked_at, $1) WHERE id = $2")
                    .bind(int(now_ms))
                    .bind(id.as_str())
                    .execute(session.connection())
                    .await?;
                session.done(revoked.rows_affected() > 0)
            })
            .await?;
        failpoint("store.revoke_key");
        Ok(revoked)
    }

    pub(crate) async fn use_key(&self, id: &KeyId, now_ms: u64) -> Result<(), Error> {
        self.write(|mut session| async move {
            session.may_repeat();
            session
                .query("UPDATE keys SET used_at = $1 WHERE id = $2")
                .bind(int(now_ms))
                .bind(id.as_str())
                .execute(session.connection())
                .await?;
            session.done(())
        })
        .await
    }
}

fn read_key(row: &PgRow) -> Result<KeyRecord, Error> {
    let id: &str = row.try_get("id")?;
    Ok(KeyRecord {
        id: parse(id, "key", id)?,
        name: row.try_get("name")?,
        scopes: parse(id, "scopes", row.try_get("scopes")?)?,
        created_at_ms: number(row, "created_at")?,
        used_at_ms: some_number(row, "used_at")?,
        revoked_at_ms: some_number(row, "revoked_at")?,
    })
}
