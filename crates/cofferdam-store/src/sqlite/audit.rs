//! Who changed what through the service.

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Sqlite, from_json, int, to_json, uint};
use crate::audit::{Audit, NewAudit};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Sqlite {
    pub(crate) async fn record_audit(&self, change: &NewAudit) -> Result<(), Error> {
        sqlx::query("INSERT INTO audit (at, actor, action, subject, data) VALUES (?, ?, ?, ?, ?)")
            .bind(int(change.at_ms))
            .bind(&change.actor)
            .bind(&change.action)
            .bind(&change.subject)
            .bind(to_json(&change.data))
            .execute(&mut *self.writer().await)
            .await?;
        failpoint("store.record_audit");
        Ok(())
    }

    pub(crate) async fn audit_before(&self, seq: u64, newest: u32) -> Result<Vec<Audit>, Error> {
        let rows = sqlx::query("SELECT * FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT ?")
            .bind(int(seq))
            .bind(newest)
            .fetch_all(self.readers())
            .await?;
        let read = |row: &SqliteRow| {
            let change = NewAudit {
                at_ms: uint(row.try_get("at")?),
                actor: row.try_get("actor")?,
                action: row.try_get("action")?,
                subject: row.try_get("subject")?,
                data: from_json("", "audit data", row.try_get("data")?)?,
            };
            Ok(Audit { seq: uint(row.try_get("seq")?), change })
        };
        rows.iter().map(read).collect()
    }
}
