//! Reads events.

use cofferdam_core::{AttemptRef, Event, EventType, RunId};
use rusqlite::{Row, params};

use super::{Sqlite, all, from_json, int, one, optional, uint};
use crate::error::Error;

impl Sqlite {
    pub(crate) async fn events_after(&self, run: &RunId, seq: u64, limit: u32) -> Result<Vec<Event>, Error> {
        let sql =
            "SELECT seq, at, type, attempt, data FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?";
        let run = run.clone();
        self.read(move |connection| {
            all(connection, sql, params![run.as_str(), int(seq), limit], |row| read_event(&run, row))
        })
        .await
    }

    pub(crate) async fn event_count(&self, run: &RunId) -> Result<u64, Error> {
        let sql = "SELECT last_seq FROM runs WHERE id = ?";
        let id = run.clone();
        let last = self
            .read(move |connection| {
                optional(connection, sql, params![id.as_str()], |row| Ok(uint(row.get(0)?)))
            })
            .await?;
        last.ok_or_else(|| Error::NotFound { run: run.clone() })
    }

    pub(crate) async fn last_worker_seq(&self, attempt: &AttemptRef) -> Result<Option<u64>, Error> {
        let sql = "SELECT max(worker_seq) FROM events \
                   WHERE run = ? AND attempt = ? AND worker_seq IS NOT NULL";
        let attempt = attempt.clone();
        self.read(move |connection| {
            one(connection, sql, params![attempt.run.as_str(), attempt.number], |row| {
                Ok(row.get::<_, Option<i64>>(0)?.map(uint))
            })
        })
        .await
    }
}

pub(super) fn read_event(run: &RunId, row: &Row<'_>) -> Result<Event, Error> {
    let unreadable = || Error::Unreadable { run: run.to_string(), what: "event type" };
    Ok(Event {
        seq: uint(row.get("seq")?),
        at_ms: uint(row.get("at")?),
        event_type: EventType::parse(&row.get::<_, String>("type")?).ok_or_else(unreadable)?,
        attempt: row.get("attempt")?,
        data: from_json(run.as_str(), "event data", &row.get::<_, String>("data")?)?,
    })
}
