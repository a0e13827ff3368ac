//! The nodes that execute runs, and how they wake each other.

use cofferdam_core::{Delta, NodeId, RunId};

use super::Store;
use crate::error::Error;
use crate::node_record::NodeRecord;
use crate::session::{Row, values};
use crate::stored::{parse, to_json};
use crate::wake::{Listens, Wakes, wake_all, wake_readers};

impl Store {
    /// Tells everybody who waits that there may be something to do. A hint, never the data: it never waits, and whoever
    /// misses it polls.
    pub fn wake(&self) {
        match self {
            Self::Sqlite(store) => drop(wake_all(store.wake_folder())),
            Self::Postgres(store) => store.wake(),
        }
    }

    /// Tells readers that a run has new events: nothing that anybody has to act on.
    pub fn wake_readers(&self) {
        match self {
            Self::Sqlite(store) => drop(wake_readers(store.wake_folder())),
            Self::Postgres(store) => store.wake_readers(),
        }
    }

    /// Tells readers a piece of what a live run is saying, without secrets. It never waits, may be lost and is not kept: the
    /// event that the piece belongs to has all of it. Must be called within a tokio runtime.
    pub fn hint(&self, run: &RunId, delta: Delta) {
        match self {
            Self::Sqlite(store) => store.hint(run, delta),
            Self::Postgres(store) => store.hint(run, delta),
        }
    }

    /// Listens for wakes under a name that nobody else has, until the returned value is dropped. Must be called within a
    /// tokio runtime. Where no wake can come, the count never changes.
    #[must_use]
    pub fn wakes(&self, name: &NodeId, listens: Listens) -> Wakes {
        match self {
            Self::Sqlite(store) => Wakes::of_folder(store.wake_folder(), name, listens),
            Self::Postgres(store) => store.wakes(listens),
        }
    }

    /// Writes down what a node tells of itself, over what it told before.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn report_node(&self, node: &NodeRecord) -> Result<(), Error> {
        let node = node.clone();
        // A report is renewed all the time; one that a power cut takes back is of no interest.
        self.write_ledger(async move |session| {
            session.may_repeat();
            let NodeRecord { id, place, started_at_ms, seen_at_ms, report } = &node;
            session
                .execute(
                    "INSERT INTO nodes (id, place, started_at, seen_at, report) VALUES (?1, ?2, ?3, ?4, ?5) \
                     ON CONFLICT (id) DO UPDATE SET place = excluded.place, started_at = excluded.started_at, \
                     seen_at = excluded.seen_at, report = excluded.report",
                    values![id, place, *started_at_ms, *seen_at_ms, to_json(report)],
                )
                .await
        })
        .await?;
        Ok(())
    }

    /// Forgets a node.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn remove_node(&self, node: &NodeId) -> Result<(), Error> {
        let node = node.clone();
        self.write_ledger(async move |session| {
            session.may_repeat();
            session.execute("DELETE FROM nodes WHERE id = ?1", values![&node]).await
        })
        .await?;
        Ok(())
    }

    /// Every node that has told of itself and was not forgotten.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn nodes(&self) -> Result<Vec<NodeRecord>, Error> {
        const SQL: &str = "SELECT id, place, started_at, seen_at, report FROM nodes ORDER BY id";
        self.read(async move |session| session.all(SQL, &[], read_node).await).await
    }
}

fn read_node(row: Row<'_>) -> Result<NodeRecord, Error> {
    let id: String = row.get("id")?;
    Ok(NodeRecord {
        id: parse(&id, "node", &id)?,
        place: row.parse(&id, "place", "place")?,
        started_at_ms: row.get("started_at")?,
        seen_at_ms: row.get("seen_at")?,
        report: row.json(&id, "report", "report")?,
    })
}
