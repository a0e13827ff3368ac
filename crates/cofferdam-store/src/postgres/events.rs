//! Reads events.

use cofferdam_core::{AttemptRef, Event, EventType, RunId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{Postgres, from_json, int, number, some_number, uint};
use crate::error::Error;

impl Postgres {
    pub(crate) async fn events_after(&self, run: &RunId, seq: u64, limit: u32) -> Result<Vec<Event>, Error> {
        let rows = self
            .read(|mut session| async move {
                Ok(session
                    .query(
                        "SELECT seq, at, type, attempt, data FROM events WHERE run = $1 AND seq > $2 \
                         ORDER BY seq LIMIT $3",
                    )
                    .bind(run.as_str())
                    .bind(int(seq))
                    .bind(i64::from(limit))
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        rows.iter().map(|row| read_event(run, row)).collect()
    }

    pub(crate) async fn event_count(&self, run: &RunId) -> Result<u64, Error> {
        let last: Option<i64> = self
            .read(|mut session| async move {
                Ok(session
                    .scalar("SELECT last_seq FROM runs WHERE id = $1")
                    .bind(run.as_str())
                    .fetch_optional(session.connection())
                    .await?)
            })
            .await?;
        last.map(uint).ok_or_else(|| Error::NotFound { run: run.clone() })
    }

    pub(crate) async fn last_worker_seq(&self, attempt: &AttemptRef) -> Result<Option<u64>, Error> {
        let last: Option<i64> = self
            .read(|mut session| async move {
                Ok(session
                    .scalar(
                        "SELECT max(worker_seq) FROM events \
                         WHERE run = $1 AND attempt = $2 AND worker_seq IS NOT NULL",
                    )
                    .bind(attempt.run.as_str())
                    .bind(i64::from(attempt.number))
                    .fetch_one(session.connection())
                    .await?)
            })
            .await?;
        Ok(last.map(uint))
    }
}

pub(super) fn read_event(run: &RunId, row: &PgRow) -> Result<Event, Error> {
    let unreadable = || Error::Unreadable { run: run.to_string(), what: "event type" };
    Ok(Event {
        seq: number(row, "seq")?,
        at_ms: number(row, "at")?,
        event_type: EventType::parse(row.try_get("type")?).ok_or_else(unreadable)?,
        attempt: some_number(row, "attempt")?.map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
        data: from_json(run.as_str(), "event data", row.try_get("data")?)?,
    })
}
