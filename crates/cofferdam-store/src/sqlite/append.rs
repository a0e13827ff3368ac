//! Adds events: whole batches, numbered without gaps.

use std::collections::HashSet;

use cofferdam_core::{Event, NewEvent, RunId};
use sqlx::{QueryBuilder, SqliteConnection};

use super::fence::held;
use super::{Sqlite, begin, int, to_json, uint};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;

/// Seven values a row, and SQLite takes 32,766 in one statement.
const ROWS_PER_INSERT: usize = 1_000;

impl Sqlite {
    pub(crate) async fn append(&self, lease: &Lease, events: &[NewEvent]) -> Result<Vec<Event>, Error> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        held(&mut transaction, lease).await?.require_open_to(lease, events)?;
        let stored = append_new(&mut transaction, lease, events).await?;
        if stored.is_empty() {
            return Ok(stored);
        }
        transaction.commit().await?;
        failpoint("store.append");
        Ok(stored)
    }
}

/// Adds those events of the lease's attempt that are not there yet.
pub(super) async fn append_new(
    transaction: &mut SqliteConnection,
    lease: &Lease,
    events: &[NewEvent],
) -> Result<Vec<Event>, Error> {
    let attempt = lease.attempt();
    let mut seen = seen_worker_seqs(transaction, lease, events).await?;
    let new: Vec<NewEvent> =
        events.iter().filter(|event| event.worker_seq.is_none_or(|seq| seen.insert(seq))).cloned().collect();
    number_and_insert(transaction, &attempt.run, Some(attempt.number), &new).await
}

async fn seen_worker_seqs(
    transaction: &mut SqliteConnection,
    lease: &Lease,
    events: &[NewEvent],
) -> Result<HashSet<u64>, Error> {
    let given = || events.iter().filter_map(|event| event.worker_seq);
    let (Some(first), Some(last)) = (given().min(), given().max()) else { return Ok(HashSet::new()) };
    let seen: Vec<i64> = sqlx::query_scalar(
        "SELECT worker_seq FROM events \
         WHERE run = ? AND attempt = ? AND worker_seq >= ? AND worker_seq <= ?",
    )
    .bind(lease.attempt().run.as_str())
    .bind(lease.attempt().number)
    .bind(int(first))
    .bind(int(last))
    .fetch_all(transaction)
    .await?;
    Ok(seen.into_iter().map(uint).collect())
}

/// Gives the events the run's next numbers and stores them.
pub(super) async fn number_and_insert(
    transaction: &mut SqliteConnection,
    run: &RunId,
    attempt: Option<u32>,
    events: &[NewEvent],
) -> Result<Vec<Event>, Error> {
    let Some(latest_ms) = events.iter().map(|event| event.at_ms).max() else { return Ok(Vec::new()) };
    let last: i64 = sqlx::query_scalar(
        "UPDATE runs SET last_seq = last_seq + ?2, updated_at = max(updated_at, ?3) WHERE id = ?1 \
         RETURNING last_seq",
    )
    .bind(run.as_str())
    .bind(int(events.len() as u64))
    .bind(int(latest_ms))
    .fetch_one(&mut *transaction)
    .await?;
    let first = uint(last) + 1 - events.len() as u64;
    let numbered: Vec<(u64, &NewEvent)> = (first..).zip(events).collect();
    for rows in numbered.chunks(ROWS_PER_INSERT) {
        let mut insert = QueryBuilder::<sqlx::Sqlite>::new(
            "INSERT INTO events (run, seq, at, type, attempt, worker_seq, data) ",
        );
        insert.push_values(rows, |mut row, (seq, event)| {
            row.push_bind(run.as_str())
                .push_bind(int(*seq))
                .push_bind(int(event.at_ms))
                .push_bind(event.event_type.as_str())
                .push_bind(attempt)
                .push_bind(event.worker_seq.map(int))
                .push_bind(to_json(&event.data));
        });
        // Batches come in many sizes; keeping a prepared statement for each would only fill the cache.
        insert.build().persistent(false).execute(&mut *transaction).await?;
    }
    let event = |(seq, new): (u64, &NewEvent)| Event {
        seq,
        at_ms: new.at_ms,
        event_type: new.event_type,
        attempt,
        data: new.data.clone(),
    };
    Ok(numbered.into_iter().map(event).collect())
}
