//! Adds events: whole batches, numbered without gaps.

use std::collections::HashSet;

use cofferdam_core::{Event, NewEvent, RunId};
use sqlx::Row;

use super::fence::held;
use super::session::Session;
use super::{Postgres, int, number, to_json, uint};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;

/// The run's row gives the numbers and is locked from then on, so that they are in the order of the commits. The name of
/// the transaction comes along for the case that its end is not heard of.
const NUMBER_AND_INSERT: &str = "WITH numbered AS (\
     UPDATE runs SET last_seq = last_seq + $2, updated_at = greatest(updated_at, $3) WHERE id = $1 RETURNING last_seq), \
     stored AS (\
     INSERT INTO events (run, seq, at, type, attempt, worker_seq, data) \
     SELECT $1, numbered.last_seq - $2 + given.place, given.at, given.type, $4, given.worker_seq, given.data \
     FROM numbered, unnest($5::bigint[], $6::text[], $7::bigint[], $8::text[]) \
     WITH ORDINALITY AS given (at, type, worker_seq, data, place)) \
     SELECT last_seq, pg_current_xact_id()::text AS transaction FROM numbered";

impl Postgres {
    pub(crate) async fn append(&self, lease: &Lease, events: &[NewEvent]) -> Result<Vec<Event>, Error> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let stored = self
            .write(|mut session| async move {
                held(&mut session, lease).await?.require_open_to(lease, events)?;
                let stored = append_new(&mut session, lease, events).await?;
                session.done(stored)
            })
            .await?;
        if !stored.is_empty() {
            failpoint("store.append");
        }
        Ok(stored)
    }
}

/// Adds those events of the lease's attempt that are not there yet.
pub(super) async fn append_new(
    session: &mut Session,
    lease: &Lease,
    events: &[NewEvent],
) -> Result<Vec<Event>, Error> {
    let attempt = lease.attempt();
    let mut seen = seen_worker_seqs(session, lease, events).await?;
    let new: Vec<&NewEvent> =
        events.iter().filter(|event| event.worker_seq.is_none_or(|seq| seen.insert(seq))).collect();
    number_and_insert(session, &attempt.run, Some(attempt.number), &new).await
}

async fn seen_worker_seqs(
    session: &mut Session,
    lease: &Lease,
    events: &[NewEvent],
) -> Result<HashSet<u64>, Error> {
    let given = || events.iter().filter_map(|event| event.worker_seq);
    let (Some(first), Some(last)) = (given().min(), given().max()) else { return Ok(HashSet::new()) };
    let seen: Vec<i64> = session
        .scalar(
            "SELECT worker_seq FROM events \
             WHERE run = $1 AND attempt = $2 AND worker_seq >= $3 AND worker_seq <= $4",
        )
        .bind(lease.attempt().run.as_str())
        .bind(i64::from(lease.attempt().number))
        .bind(int(first))
        .bind(int(last))
        .fetch_all(session.connection())
        .await?;
    Ok(seen.into_iter().map(uint).collect())
}

/// Gives the events the run's next numbers and stores them.
pub(super) async fn number_and_insert(
    session: &mut Session,
    run: &RunId,
    attempt: Option<u32>,
    events: &[&NewEvent],
) -> Result<Vec<Event>, Error> {
    let Some(latest_ms) = events.iter().map(|event| event.at_ms).max() else { return Ok(Vec::new()) };
    let row = session
        .query(NUMBER_AND_INSERT)
        .bind(run.as_str())
        .bind(int(events.len() as u64))
        .bind(int(latest_ms))
        .bind(attempt.map(i64::from))
        .bind(events.iter().map(|event| int(event.at_ms)).collect::<Vec<_>>())
        .bind(events.iter().map(|event| event.event_type.as_str()).collect::<Vec<_>>())
        .bind(events.iter().map(|event| event.worker_seq.map(int)).collect::<Vec<_>>())
        .bind(events.iter().map(|event| to_json(&event.data)).collect::<Vec<_>>())
        .fetch_one(session.connection())
        .await?;
    let last = number(&row, "last_seq")?;
    session.proven_by(row.try_get("transaction")?, run, last);
    let first = last + 1 - events.len() as u64;
    let event = |(seq, new): (u64, &&NewEvent)| Event {
        seq,
        at_ms: new.at_ms,
        event_type: new.event_type,
        attempt,
        data: new.data.clone(),
    };
    Ok((first..).zip(events).map(event).collect())
}
