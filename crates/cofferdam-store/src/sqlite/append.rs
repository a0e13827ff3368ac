//! Adds events: whole batches, numbered without gaps.

use std::collections::HashSet;

use cofferdam_core::{Event, NewEvent, RunId};
use rusqlite::{Connection, params};

use super::fence::held;
use super::{Sqlite, all, int, one, to_json, uint};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;

impl Sqlite {
    pub(crate) async fn append(&self, lease: &Lease, events: &[NewEvent]) -> Result<Vec<Event>, Error> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let (lease, events) = (lease.clone(), events.to_vec());
        let stored = self
            .write(move |transaction| {
                held(transaction, &lease)?.require_open_to(&lease, &events)?;
                append_new(transaction, &lease, &events)
            })
            .await?;
        if !stored.is_empty() {
            failpoint("store.append");
        }
        Ok(stored)
    }
}

/// Adds those events of the lease's attempt that are not there yet.
pub(super) fn append_new(
    transaction: &Connection,
    lease: &Lease,
    events: &[NewEvent],
) -> Result<Vec<Event>, Error> {
    let attempt = lease.attempt();
    let mut seen = seen_worker_seqs(transaction, lease, events)?;
    let new: Vec<NewEvent> =
        events.iter().filter(|event| event.worker_seq.is_none_or(|seq| seen.insert(seq))).cloned().collect();
    number_and_insert(transaction, &attempt.run, Some(attempt.number), &new)
}

fn seen_worker_seqs(
    transaction: &Connection,
    lease: &Lease,
    events: &[NewEvent],
) -> Result<HashSet<u64>, Error> {
    let given = || events.iter().filter_map(|event| event.worker_seq);
    let (Some(first), Some(last)) = (given().min(), given().max()) else { return Ok(HashSet::new()) };
    let seen = all(
        transaction,
        "SELECT worker_seq FROM events WHERE run = ?1 AND attempt = ?2 AND worker_seq BETWEEN ?3 AND ?4",
        params![lease.attempt().run.as_str(), lease.attempt().number, int(first), int(last)],
        |row| Ok(uint(row.get(0)?)),
    )?;
    Ok(seen.into_iter().collect())
}

/// Gives the events the run's next numbers and stores them.
pub(super) fn number_and_insert(
    transaction: &Connection,
    run: &RunId,
    attempt: Option<u32>,
    events: &[NewEvent],
) -> Result<Vec<Event>, Error> {
    let Some(latest_ms) = events.iter().map(|event| event.at_ms).max() else { return Ok(Vec::new()) };
    let last: i64 = one(
        transaction,
        "UPDATE runs SET last_seq = last_seq + ?2, updated_at = max(updated_at, ?3) WHERE id = ?1 \
         RETURNING last_seq",
        params![run.as_str(), int(events.len() as u64), int(latest_ms)],
        |row| Ok(row.get(0)?),
    )?;
    let first = uint(last) + 1 - events.len() as u64;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO events (run, seq, at, type, attempt, worker_seq, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut stored = Vec::with_capacity(events.len());
    for (seq, event) in (first..).zip(events) {
        insert.execute(params![
            run.as_str(),
            int(seq),
            int(event.at_ms),
            event.event_type.as_str(),
            attempt,
            event.worker_seq.map(int),
            to_json(&event.data),
        ])?;
        stored.push(Event {
            seq,
            at_ms: event.at_ms,
            event_type: event.event_type,
            attempt,
            data: event.data.clone(),
        });
    }
    Ok(stored)
}
