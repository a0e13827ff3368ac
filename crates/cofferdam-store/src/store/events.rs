//! Reads events.

use cofferdam_core::{AttemptRef, Event, EventType, RunId};

use super::Store;
use crate::error::Error;
use crate::page::{Page, most_page_bytes};
use crate::session::{Row, Sql, values};

const AFTER: Sql = Sql::differs(
    "SELECT seq, at, type, attempt, data FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    concat!(
        "SELECT seq, at, type, attempt, data FROM (SELECT seq, at, type, attempt, data, \
         sum(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before \
         FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3) AS page WHERE before < ",
        most_page_bytes!(),
        " ORDER BY seq"
    ),
);

impl Store {
    /// The run's events after this number, in order: at most `limit`, and no more than a page holds. There are no more if
    /// there are none.
    ///
    /// # Errors
    /// If the database fails or an event cannot be read.
    pub async fn events_after(&self, run: &RunId, seq: u64, limit: u32) -> Result<Vec<Event>, Error> {
        Ok(self.events_page(run, seq, limit).await?.rows)
    }

    /// The same, with what they are together.
    ///
    /// # Errors
    /// As [`Self::events_after`].
    pub async fn events_page(&self, run: &RunId, seq: u64, limit: u32) -> Result<Page<Event>, Error> {
        let run = run.clone();
        self.read(async move |session| {
            let read = |row: Row<'_>| Ok((read_event(&run, row)?, row.bytes("data")?));
            session.page(AFTER, values![&run, seq, limit], read).await
        })
        .await
    }

    /// How many events the run has, which is also the number of the newest.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn event_count(&self, run: &RunId) -> Result<u64, Error> {
        const SQL: &str = "SELECT last_seq FROM runs WHERE id = ?1";
        let id = run.clone();
        let last = self
            .read(async move |session| session.optional(SQL, values![&id], |row| row.first()).await)
            .await?;
        last.ok_or_else(|| Error::NotFound { run: run.clone() })
    }

    /// The number of the last worker line of this attempt that was stored.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn last_worker_seq(&self, attempt: &AttemptRef) -> Result<Option<u64>, Error> {
        const SQL: &str =
            "SELECT max(worker_seq) FROM events WHERE run = ?1 AND attempt = ?2 AND worker_seq IS NOT NULL";
        let AttemptRef { run, number } = attempt.clone();
        self.read(async move |session| session.one(SQL, values![&run, number], |row| row.first()).await).await
    }
}

pub(super) fn read_event(run: &RunId, row: Row<'_>) -> Result<Event, Error> {
    let unreadable = || Error::Unreadable { run: run.to_string(), what: "event type" };
    Ok(Event {
        seq: row.get("seq")?,
        at_ms: row.get("at")?,
        event_type: EventType::parse(&row.get::<String>("type")?).ok_or_else(unreadable)?,
        attempt: row.get("attempt")?,
        data: row.json(run.as_str(), "event data", "data")?,
    })
}
