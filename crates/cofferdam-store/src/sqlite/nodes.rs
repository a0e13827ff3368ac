//! The nodes that execute runs.

use cofferdam_core::NodeId;
use rusqlite::params;

use super::{Sqlite, all, execute, from_json, int, parse, to_json, uint};
use crate::error::Error;
use crate::node_record::NodeRecord;

impl Sqlite {
    pub(crate) async fn report_node(&self, node: &NodeRecord) -> Result<(), Error> {
        let node = node.clone();
        // A report is renewed all the time; one that a power cut takes back is of no interest.
        self.write_ledger(move |transaction| {
            execute(
                transaction,
                "INSERT INTO nodes (id, place, started_at, seen_at, report) VALUES (?, ?, ?, ?, ?) \
                 ON CONFLICT DO UPDATE SET place = excluded.place, started_at = excluded.started_at, \
                 seen_at = excluded.seen_at, report = excluded.report",
                params![
                    node.id.as_str(),
                    node.place.as_str(),
                    int(node.started_at_ms),
                    int(node.seen_at_ms),
                    to_json(&node.report),
                ],
            )?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn remove_node(&self, node: &NodeId) -> Result<(), Error> {
        let node = node.clone();
        self.write_ledger(move |transaction| {
            execute(transaction, "DELETE FROM nodes WHERE id = ?", params![node.as_str()])?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<NodeRecord>, Error> {
        let sql = "SELECT id, place, started_at, seen_at, report FROM nodes ORDER BY id";
        self.read(move |connection| {
            all(connection, sql, [], |row| {
                let id: String = row.get("id")?;
                Ok(NodeRecord {
                    id: parse(&id, "node", &id)?,
                    place: parse(&id, "place", &row.get::<_, String>("place")?)?,
                    started_at_ms: uint(row.get("started_at")?),
                    seen_at_ms: uint(row.get("seen_at")?),
                    report: from_json(&id, "report", &row.get::<_, String>("report")?)?,
                })
            })
        })
        .await
    }
}
