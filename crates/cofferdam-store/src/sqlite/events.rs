//! Reads events.

use cofferdam_core::{AttemptRef, Event, EventType, RunId};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Sqlite, from_json, int, uint};
use crate::error::Error;

impl Sqlite {
    pub(crate) async fn events_after(&self, run: &RunId, seq: u64, limit: u32) -> Result<Vec<Event>, Error> {
        let rows = sqlx::query(
            "SELECT seq, at, type, attempt, data FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?",
        )
        .bind(run.as_str())
        .bind(int(seq))
        .bind(limit)
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(|row| read_event(run, row)).collect()
    }

    pub(crate) async fn event_count(&self, run: &RunId) -> Result<u64, Error> {
        let last: Option<i64> = sqlx::query_scalar("SELECT last_seq FROM runs WHERE id = ?")
            .bind(run.as_str())
            .fetch_optional(self.readers())
            .await?;
        last.map(uint).ok_or_else(|| Error::NotFound { run: run.clone() })
    }

    pub(crate) async fn last_worker_seq(&self, attempt: &AttemptRef) -> Result<Option<u64>, Error> {
        let last: Option<i64> = sqlx::query_scalar(
            "SELECT max(worker_seq) FROM events \
                 WHERE run = ? AND attempt = ? AND worker_seq IS NOT NULL",
        )
        .bind(attempt.run.as_str())
        .bind(attempt.number)
        .fetch_one(self.readers())
        .await?;
        Ok(last.map(uint))
    }
}

pub(super) fn read_event(run: &RunId, row: &SqliteRow) -> Result<Event, Error> {
    let unreadable = || Error::Unreadable { run: run.to_string(), what: "event type" };
    Ok(Event {
        seq: uint(row.try_get("seq")?),
        at_ms: uint(row.try_get("at")?),
        event_type: EventType::parse(row.try_get("type")?).ok_or_else(unreadable)?,
        attempt: row.try_get("attempt")?,
        data: from_json(run.as_str(), "event data", row.try_get("data")?)?,
    })
}
