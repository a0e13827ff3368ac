//! Who changed what through the service.

use rusqlite::params;

use super::{Sqlite, all, execute, from_json, int, to_json, uint};
use crate::audit::{Audit, NewAudit};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Sqlite {
    pub(crate) async fn record_audit(&self, change: &NewAudit) -> Result<(), Error> {
        let NewAudit { at_ms, actor, action, subject, data } = change.clone();
        self.write(move |transaction| {
            execute(
                transaction,
                "INSERT INTO audit (at, actor, action, subject, data) VALUES (?, ?, ?, ?, ?)",
                params![int(at_ms), actor, action, subject, to_json(&data)],
            )
        })
        .await?;
        failpoint("store.record_audit");
        Ok(())
    }

    pub(crate) async fn audit_before(&self, seq: u64, newest: u32) -> Result<Vec<Audit>, Error> {
        self.read(move |connection| {
            let sql = "SELECT * FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT ?";
            all(connection, sql, params![int(seq), newest], |row| {
                let change = NewAudit {
                    at_ms: uint(row.get("at")?),
                    actor: row.get("actor")?,
                    action: row.get("action")?,
                    subject: row.get("subject")?,
                    data: from_json("", "audit data", &row.get::<_, String>("data")?)?,
                };
                Ok(Audit { seq: uint(row.get("seq")?), change })
            })
        })
        .await
    }
}
