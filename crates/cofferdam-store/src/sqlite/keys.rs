//! API keys.

use cofferdam_core::KeyId;
use rusqlite::{Row, params};

use super::{Sqlite, all, execute, int, optional, parse, uint};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::key::{KeyRecord, NewKey};

const KEYS: &str = "SELECT id, name, scopes, created_at, used_at, revoked_at FROM keys \
                    WHERE ?1 IS NULL OR sha256 = ?1 ORDER BY created_at, id";

impl Sqlite {
    pub(crate) async fn create_key(&self, key: &NewKey, now_ms: u64) -> Result<(), Error> {
        let sql = "INSERT INTO keys (id, name, sha256, scopes, created_at) VALUES (?, ?, ?, ?, ?)";
        let key = key.clone();
        self.write(move |transaction| {
            let scopes = key.scopes.to_string();
            execute(transaction, sql, params![key.id.as_str(), key.name, key.sha256, scopes, int(now_ms)])
        })
        .await?;
        failpoint("store.create_key");
        Ok(())
    }

    pub(crate) async fn key_of(&self, sha256: &str) -> Result<Option<KeyRecord>, Error> {
        let sha256 = sha256.to_owned();
        self.read(move |connection| optional(connection, KEYS, params![sha256], read_key)).await
    }

    pub(crate) async fn keys(&self) -> Result<Vec<KeyRecord>, Error> {
        self.read(|connection| all(connection, KEYS, params![None::<&str>], read_key)).await
    }

    pub(crate) async fn revoke_key(&self, id: &KeyId, now_ms: u64) -> Result<bool, Error> {
        let sql = "UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?";
        let id = id.clone();
        let revoked = self
            .write(move |transaction| execute(transaction, sql, params![int(now_ms), id.as_str()]))
            .await?;
        failpoint("store.revoke_key");
        Ok(revoked > 0)
    }

    pub(crate) async fn use_key(&self, id: &KeyId, now_ms: u64) -> Result<(), Error> {
        let sql = "UPDATE keys SET used_at = ? WHERE id = ?";
        let id = id.clone();
        self.write_ledger(move |transaction| execute(transaction, sql, params![int(now_ms), id.as_str()]))
            .await?;
        Ok(())
    }
}

fn read_key(row: &Row<'_>) -> Result<KeyRecord, Error> {
    let id: String = row.get("id")?;
    Ok(KeyRecord {
        id: parse(&id, "key", &id)?,
        name: row.get("name")?,
        scopes: parse(&id, "scopes", &row.get::<_, String>("scopes")?)?,
        created_at_ms: uint(row.get("created_at")?),
        used_at_ms: row.get::<_, Option<i64>>("used_at")?.map(uint),
        revoked_at_ms: row.get::<_, Option<i64>>("revoked_at")?.map(uint),
    })
}
