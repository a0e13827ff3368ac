//! The nodes that execute runs.

use cofferdam_core::NodeId;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{Postgres, from_json, int, number, parse, to_json};
use crate::error::Error;
use crate::node_record::NodeRecord;

impl Postgres {
    pub(crate) async fn report_node(&self, node: &NodeRecord) -> Result<(), Error> {
        self.write(|mut session| async move {
            session.may_repeat();
            session
                .query(
                    "INSERT INTO nodes (id, place, started_at, seen_at, report) VALUES ($1, $2, $3, $4, $5) \
                     ON CONFLICT (id) DO UPDATE SET place = excluded.place, started_at = excluded.started_at, \
                     seen_at = excluded.seen_at, report = excluded.report",
                )
                .bind(node.id.as_str())
                .bind(node.place.as_str())
                .bind(int(node.started_at_ms))
                .bind(int(node.seen_at_ms))
                .bind(to_json(&node.report))
                .execute(session.connection())
                .await?;
            session.done(())
        })
        .await
    }

    pub(crate) async fn remove_node(&self, node: &NodeId) -> Result<(), Error> {
        self.write(|mut session| async move {
            session.may_repeat();
            session
                .query("DELETE FROM nodes WHERE id = $1")
                .bind(node.as_str())
                .execute(session.connection())
                .await?;
            session.done(())
        })
        .await
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<NodeRecord>, Error> {
        let rows = self
            .read(|mut session| async move {
                Ok(session
                    .query("SELECT id, place, started_at, seen_at, report FROM nodes ORDER BY id")
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        let read = |row: &PgRow| {
            let id: &str = row.try_get("id")?;
            Ok(NodeRecord {
                id: parse(id, "node", id)?,
                place: parse(id, "place", row.try_get("place")?)?,
                started_at_ms: number(row, "started_at")?,
                seen_at_ms: number(row, "seen_at")?,
                report: from_json(id, "report", row.try_get("report")?)?,
            })
        };
        rows.iter().map(read).collect()
    }
}
