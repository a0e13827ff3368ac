//! The nodes that execute runs.

use cofferdam_core::NodeId;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Sqlite, from_json, int, parse, to_json, uint};
use crate::error::Error;
use crate::node_record::NodeRecord;

impl Sqlite {
    pub(crate) async fn report_node(&self, node: &NodeRecord) -> Result<(), Error> {
        // A report is renewed all the time; one that a power cut takes back is of no interest.
        sqlx::query(
            "INSERT INTO nodes (id, place, started_at, seen_at, report) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT DO UPDATE SET place = excluded.place, started_at = excluded.started_at, \
             seen_at = excluded.seen_at, report = excluded.report",
        )
        .bind(node.id.as_str())
        .bind(node.place.as_str())
        .bind(int(node.started_at_ms))
        .bind(int(node.seen_at_ms))
        .bind(to_json(&node.report))
        .execute(&mut *self.ledger().await?)
        .await?;
        Ok(())
    }

    pub(crate) async fn remove_node(&self, node: &NodeId) -> Result<(), Error> {
        sqlx::query("DELETE FROM nodes WHERE id = ?")
            .bind(node.as_str())
            .execute(&mut *self.ledger().await?)
            .await?;
        Ok(())
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<NodeRecord>, Error> {
        let rows = sqlx::query("SELECT id, place, started_at, seen_at, report FROM nodes ORDER BY id")
            .fetch_all(self.readers())
            .await?;
        let read = |row: &SqliteRow| {
            let id: &str = row.try_get("id")?;
            Ok(NodeRecord {
                id: parse(id, "node", id)?,
                place: parse(id, "place", row.try_get("place")?)?,
                started_at_ms: uint(row.try_get("started_at")?),
                seen_at_ms: uint(row.try_get("seen_at")?),
                report: from_json(id, "report", row.try_get("report")?)?,
            })
        };
        rows.iter().map(read).collect()
    }
}
