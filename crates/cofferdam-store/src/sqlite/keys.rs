//! API keys.

use cofferdam_core::KeyId;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Sqlite, int, parse, uint};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::key::{KeyRecord, NewKey};

const KEYS: &str = "SELECT id, name, scopes, created_at, used_at, revoked_at FROM keys \
                    WHERE ?1 IS NULL OR sha256 = ?1 ORDER BY created_at, id";

impl Sqlite {
    pub(crate) async fn create_key(&self, key: &NewKey, now_ms: u64) -> Result<(), Error> {
        sqlx::query("INSERT INTO keys (id, name, sha256, scopes, created_at) VALUES (?, ?, ?, ?, ?)")
            .bind(key.id.as_str())
            .bind(&key.name)
            .bind(&key.sha256)
            .bind(key.scopes.to_string())
            .bind(int(now_ms))
            .execute(&mut *self.writer().await)
            .await?;
        failpoint("store.create_key");
        Ok(())
    }

    pub(crate) async fn key_of(&self, sha256: &str) -> Result<Option<KeyRecord>, Error> {
        let row = sqlx::query(KEYS).bind(sha256).fetch_optional(self.readers()).await?;
        row.as_ref().map(read_key).transpose()
    }

    pub(crate) async fn keys(&self) -> Result<Vec<KeyRecord>, Error> {
        let rows = sqlx::query(KEYS).bind(None::<&str>).fetch_all(self.readers()).await?;
        rows.iter().map(read_key).collect()
    }

    pub(crate) async fn revoke_key(&self, id: &KeyId, now_ms: u64) -> Result<bool, Error> {
        let revoked = sqlx::query("UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?")
            .bind(int(now_ms))
            .bind(id.as_str())
            .execute(&mut *self.writer().await)
            .await?;
        failpoint("store.revoke_key");
        Ok(revoked.rows_affected() > 0)
    }

    pub(crate) async fn use_key(&self, id: &KeyId, now_ms: u64) -> Result<(), Error> {
        sqlx::query("UPDATE keys SET used_at = ? WHERE id = ?")
            .bind(int(now_ms))
            .bind(id.as_str())
            .execute(&mut *self.ledger().await?)
            .await?;
        Ok(())
    }
}

fn read_key(row: &SqliteRow) -> Result<KeyRecord, Error> {
    let id: &str = row.try_get("id")?;
    Ok(KeyRecord {
        id: parse(id, "key", id)?,
        name: row.try_get("name")?,
        scopes: parse(id, "scopes", row.try_get("scopes")?)?,
        created_at_ms: uint(row.try_get("created_at")?),
        used_at_ms: row.try_get::<Option<i64>, _>("used_at")?.map(uint),
        revoked_at_ms: row.try_get::<Option<i64>, _>("revoked_at")?.map(uint),
    })
}
