//! Ends an attempt: for good, or to try again.

use cofferdam_core::{DeadLetter, Event, EventType, NewEvent, Outcome, RunId, RunState, Transition};
use rusqlite::{Connection, params};
use serde_json::json;

use super::append::{append_new, number_and_insert};
use super::artifacts::keep;
use super::events::read_event;
use super::fence::held;
use super::letters::keep_letter;
use super::messages::refuse_pending;
use super::{Sqlite, all, execute, from_json, int, one, optional, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::{finished, next};
use crate::lease::Lease;
use crate::record::{AfterAttempt, Left};

/// What telling of an end has done.
struct Told {
    after: AfterAttempt,
    /// Not if it was told before, in the same words.
    is_new: bool,
}

impl Sqlite {
    pub(crate) async fn finish(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        left: &Left,
        now_ms: u64,
    ) -> Result<AfterAttempt, Error> {
        let (lease, outcome, left) = (lease.clone(), outcome.clone(), left.clone());
        let told =
            self.write(move |transaction| finish(transaction, &lease, &outcome, &left, now_ms)).await?;
        if told.is_new {
            failpoint("store.finish");
        }
        Ok(told.after)
    }

    pub(crate) async fn schedule_retry(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        not_before_ms: u64,
        left: &Left,
        now_ms: u64,
    ) -> Result<AfterAttempt, Error> {
        let (lease, outcome, left) = (lease.clone(), outcome.clone(), left.clone());
        let told = self
            .write(move |transaction| {
                schedule_retry(transaction, &lease, &outcome, not_before_ms, &left, now_ms)
            })
            .await?;
        if told.is_new {
            failpoint("store.schedule_retry");
        }
        Ok(told.after)
    }
}

fn finish(
    transaction: &Connection,
    lease: &Lease,
    outcome: &Outcome,
    left: &Left,
    now_ms: u64,
) -> Result<Told, Error> {
    let run = &lease.attempt().run;
    let held = held(transaction, lease)?;
    if held.state_under(lease)?.is_final() && ended_so(transaction, lease, outcome, now_ms)? {
        let after = told_at_the_end(transaction, lease, held.state, now_ms)?;
        return Ok(Told { after, is_new: false });
    }
    let state = next(run, held.require_running(lease)?, &Transition::Finish(outcome.clone()))?;
    let mut stored = append_new(transaction, lease, &left.events)?;
    keep(transaction, lease, &left.artifacts)?;
    end_attempt(transaction, lease, outcome, now_ms)?;
    let letter = left.letter.as_ref();
    let ending = Ending { run, attempt: Some(lease.attempt().number), state, outcome, letter, now_ms };
    stored.extend(end_run(transaction, ending)?);
    Ok(Told { after: AfterAttempt { state, events: stored }, is_new: true })
}

fn schedule_retry(
    transaction: &Connection,
    lease: &Lease,
    outcome: &Outcome,
    not_before_ms: u64,
    left: &Left,
    now_ms: u64,
) -> Result<Told, Error> {
    let held = held(transaction, lease)?;
    if held.state_under(lease)? != RunState::Running
        && ended_so(transaction, lease, outcome, now_ms)?
        && (held.state == RunState::Cancelled || is_due(transaction, lease, not_before_ms)?)
    {
        let after = told_at_the_end(transaction, lease, held.state, now_ms)?;
        return Ok(Told { after, is_new: false });
    }
    let queued = next(&lease.attempt().run, held.require_running(lease)?, &Transition::Retry)?;
    let mut stored = append_new(transaction, lease, &left.events)?;
    keep(transaction, lease, &left.artifacts)?;
    end_attempt(transaction, lease, outcome, now_ms)?;
    let AfterAttempt { state, events } = if is_cancel_requested(transaction, &lease.attempt().run)? {
        cancel_instead(transaction, lease, queued, now_ms)?
    } else {
        requeue(transaction, lease, outcome, not_before_ms, now_ms)?
    };
    stored.extend(events);
    Ok(Told { after: AfterAttempt { state, events: stored }, is_new: true })
}

fn requeue(
    transaction: &Connection,
    lease: &Lease,
    outcome: &Outcome,
    not_before_ms: u64,
    now_ms: u64,
) -> Result<AfterAttempt, Error> {
    let attempt = lease.attempt();
    execute(
        transaction,
        "UPDATE runs SET state = ?1, not_before_ms = ?2, lease_node = NULL, lease_expires_at_ms = NULL, \
         updated_at = ?3 WHERE id = ?4",
        params![RunState::Queued.as_str(), int(not_before_ms), int(now_ms), attempt.run.as_str()],
    )?;
    let data = json!({ "outcome": outcome, "not_before_ms": not_before_ms });
    let event = NewEvent::new(now_ms, EventType::RunRetryScheduled, data);
    let events = number_and_insert(transaction, &attempt.run, Some(attempt.number), &[event])?;
    Ok(AfterAttempt { state: RunState::Queued, events })
}

/// A run whose end somebody has asked for is not tried again. Queued, it would wait for a node only to
/// be cancelled by it.
fn cancel_instead(
    transaction: &Connection,
    lease: &Lease,
    queued: RunState,
    now_ms: u64,
) -> Result<AfterAttempt, Error> {
    let attempt = lease.attempt();
    let state = next(&attempt.run, queued, &Transition::CancelQueued)?;
    let ending = Ending {
        run: &attempt.run,
        attempt: Some(attempt.number),
        state,
        outcome: &Outcome::Cancelled,
        letter: None,
        now_ms,
    };
    Ok(AfterAttempt { state, events: end_run(transaction, ending)? })
}

/// Whether the lease's attempt has ended in just this way: its owner asks again, since it never heard the answer.
fn ended_so(transaction: &Connection, lease: &Lease, outcome: &Outcome, now_ms: u64) -> Result<bool, Error> {
    let ended: Option<Option<String>> = optional(
        transaction,
        "SELECT outcome FROM attempts WHERE run = ?1 AND number = ?2 AND ended_at = ?3",
        params![lease.attempt().run.as_str(), lease.attempt().number, int(now_ms)],
        |row| Ok(row.get(0)?),
    )?;
    let run = lease.attempt().run.as_str();
    let ended = ended.flatten().map(|text| from_json::<Outcome>(run, "outcome", &text)).transpose()?;
    Ok(ended.as_ref() == Some(outcome))
}

fn is_due(transaction: &Connection, lease: &Lease, not_before_ms: u64) -> Result<bool, Error> {
    let sql = "SELECT not_before_ms = ?1 FROM runs WHERE id = ?2";
    one(transaction, sql, params![int(not_before_ms), lease.attempt().run.as_str()], |row| Ok(row.get(0)?))
}

fn told_at_the_end(
    transaction: &Connection,
    lease: &Lease,
    state: RunState,
    now_ms: u64,
) -> Result<AfterAttempt, Error> {
    let events = all(
        transaction,
        "SELECT seq, at, type, attempt, data FROM events WHERE run = ?1 AND attempt = ?2 AND at >= ?3 \
         AND substr(type, 1, 8) <> 'sandbox.' ORDER BY seq",
        params![lease.attempt().run.as_str(), lease.attempt().number, int(now_ms)],
        |row| read_event(&lease.attempt().run, row),
    )?;
    Ok(AfterAttempt { state, events })
}

fn end_attempt(transaction: &Connection, lease: &Lease, outcome: &Outcome, now_ms: u64) -> Result<(), Error> {
    let attempt = lease.attempt();
    execute(
        transaction,
        "UPDATE attempts SET outcome = ?1, ended_at = ?2 WHERE run = ?3 AND number = ?4",
        params![to_json(outcome), int(now_ms), attempt.run.as_str(), attempt.number],
    )?;
    Ok(())
}

fn is_cancel_requested(transaction: &Connection, run: &RunId) -> Result<bool, Error> {
    let sql = "SELECT cancel_requested_at IS NOT NULL FROM runs WHERE id = ?1";
    one(transaction, sql, params![run.as_str()], |row| Ok(row.get(0)?))
}

/// How a run ends.
pub(super) struct Ending<'a> {
    pub(super) run: &'a RunId,
    pub(super) attempt: Option<u32>,
    pub(super) state: RunState,
    pub(super) outcome: &'a Outcome,
    pub(super) letter: Option<&'a DeadLetter>,
    pub(super) now_ms: u64,
}

/// Gives the run its final state.
pub(super) fn end_run(transaction: &Connection, ending: Ending<'_>) -> Result<Vec<Event>, Error> {
    let Ending { run, attempt, state, outcome, letter, now_ms } = ending;
    execute(
        transaction,
        "UPDATE runs SET state = ?1, outcome = ?2, dead_letter = ?3, lease_node = NULL, \
         lease_expires_at_ms = NULL, updated_at = ?4, finished_at = ?4 WHERE id = ?5",
        params![state.as_str(), to_json(outcome), letter.is_some(), int(now_ms), run.as_str()],
    )?;
    let mut events = refuse_pending(transaction, run, now_ms)?;
    if *outcome == Outcome::Cancelled {
        events.push(NewEvent::new(now_ms, EventType::RunCancelled, json!({})));
    }
    if let Some(letter) = letter {
        keep_letter(transaction, run, letter, now_ms)?;
        let data = json!({ "error_class": letter.error_class });
        events.push(NewEvent::new(now_ms, EventType::RunDeadLettered, data));
    }
    events.push(finished(state, outcome, now_ms));
    number_and_insert(transaction, run, attempt, &events)
}
