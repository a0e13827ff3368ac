//! Who changed what through the service.

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{Postgres, from_json, int, number, to_json};
use crate::audit::{Audit, NewAudit};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Postgres {
    pub(crate) async fn record_audit(&self, change: &NewAudit) -> Result<(), Error> {
        self.write(|mut session| async move {
            session
                .query("INSERT INTO audit (at, actor, action, subject, data) VALUES ($1, $2, $3, $4, $5)")
                .bind(int(change.at_ms))
                .bind(&change.actor)
                .bind(&change.action)
                .bind(&change.subject)
                .bind(to_json(&change.data))
                .execute(session.connection())
                .await?;
            session.done(())
        })
        .await?;
        failpoint("store.record_audit");
        Ok(())
    }

    pub(crate) async fn audit_before(&self, seq: u64, newest: u32) -> Result<Vec<Audit>, Error> {
        let rows = self
            .read(|mut session| async move {
                Ok(session
                    .query(
                        "SELECT seq, at, actor, action, subject, data FROM audit WHERE seq < $1 \
                         ORDER BY seq DESC LIMIT $2",
                    )
                    .bind(int(seq))
                    .bind(i64::from(newest))
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        let read = |row: &PgRow| {
            let change = NewAudit {
                at_ms: number(row, "at")?,
                actor: row.try_get("actor")?,
                action: row.try_get("action")?,
                subject: row.try_get("subject")?,
                data: from_json("", "audit data", row.try_get("data")?)?,
            };
            Ok(Audit { seq: number(row, "seq")?, change })
        };
        rows.iter().map(read).collect()
    }
}
