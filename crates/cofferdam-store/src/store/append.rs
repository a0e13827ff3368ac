//! Adds events: whole batches, numbered without gaps.

use std::borrow::Borrow;
use std::collections::HashSet;

use cofferdam_core::{Event, NewEvent, RunId};

use super::Store;
use super::fence::held;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::session::{Session, values};

impl Store {
    /// Adds events of the lease's attempt in one transaction, numbered without gaps, and returns those that
    /// were not there yet. Once the attempt is over only `sandbox.*` events are taken.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`] if the lease's owner may no longer write.
    pub async fn append(&self, lease: &Lease, events: &[NewEvent]) -> Result<Vec<Event>, Error> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let (lease, events) = (lease.clone(), events.to_vec());
        let stored = self
            .write(async move |session| {
                held(session, &lease).await?.require_open_to(&lease, &events)?;
                append_new(session, &lease, &events).await
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
    session: &mut Session<'_>,
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
    session: &mut Session<'_>,
    lease: &Lease,
    events: &[NewEvent],
) -> Result<HashSet<u64>, Error> {
    let given = || events.iter().filter_map(|event| event.worker_seq);
    let (Some(first), Some(last)) = (given().min(), given().max()) else { return Ok(HashSet::new()) };
    let seen = session
        .all(
            "SELECT worker_seq FROM events WHERE run = ?1 AND attempt = ?2 AND worker_seq BETWEEN ?3 AND ?4",
            values![&lease.attempt().run, lease.attempt().number, first, last],
            |row| row.first(),
        )
        .await?;
    Ok(seen.into_iter().collect())
}

/// Gives the events the run's next numbers and stores them.
pub(super) async fn number_and_insert(
    session: &mut Session<'_>,
    run: &RunId,
    attempt: Option<u32>,
    events: &[impl Borrow<NewEvent>],
) -> Result<Vec<Event>, Error> {
    let events: Vec<&NewEvent> = events.iter().map(Borrow::borrow).collect();
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let last = session.insert_events(run, attempt, &events, None).await?;
    let event = |(seq, new): (u64, &NewEvent)| Event {
        seq,
        at_ms: new.at_ms,
        event_type: new.event_type,
        attempt,
        data: new.data.clone(),
    };
    Ok((last + 1 - events.len() as u64..).zip(events).map(event).collect())
}
