//! Ends an attempt: for good, or to try again.

use cofferdam_core::{DeadLetter, Event, EventType, NewEvent, Outcome, RunId, RunState, Transition};
use serde_json::json;
use sqlx::SqliteConnection;

use super::append::{append_new, number_and_insert};
use super::artifacts::keep;
use super::fence::require_running;
use super::letters::keep_letter;
use super::messages::refuse_pending;
use super::{Sqlite, begin, int, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::record::{AfterAttempt, Left};

impl Sqlite {
    pub(crate) async fn finish(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        left: &Left,
        now_ms: u64,
    ) -> Result<AfterAttempt, Error> {
        let run = &lease.attempt().run;
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        let state =
            next(run, require_running(&mut transaction, lease).await?, &Transition::Finish(outcome.clone()))?;
        let mut stored = append_new(&mut transaction, lease, &left.events).await?;
        keep(&mut transaction, lease, &left.artifacts).await?;
        end_attempt(&mut transaction, lease, outcome, now_ms).await?;
        let letter = left.letter.as_ref();
        let ending = Ending { run, attempt: Some(lease.attempt().number), state, outcome, letter, now_ms };
        stored.extend(end_run(&mut transaction, ending).await?);
        transaction.commit().await?;
        failpoint("store.finish");
        Ok(AfterAttempt { state, events: stored })
    }

    pub(crate) async fn schedule_retry(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        not_before_ms: u64,
        left: &Left,
        now_ms: u64,
    ) -> Result<AfterAttempt, Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        let running = require_running(&mut transaction, lease).await?;
        let queued = next(&lease.attempt().run, running, &Transition::Retry)?;
        let mut stored = append_new(&mut transaction, lease, &left.events).await?;
        keep(&mut transaction, lease, &left.artifacts).await?;
        end_attempt(&mut transaction, lease, outcome, now_ms).await?;
        let AfterAttempt { state, events } =
            if is_cancel_requested(&mut transaction, &lease.attempt().run).await? {
                cancel_instead(&mut transaction, lease, queued, now_ms).await?
            } else {
                requeue(&mut transaction, lease, outcome, not_before_ms, now_ms).await?
            };
        stored.extend(events);
        transaction.commit().await?;
        failpoint("store.schedule_retry");
        Ok(AfterAttempt { state, events: stored })
    }
}

async fn requeue(
    transaction: &mut SqliteConnection,
    lease: &Lease,
    outcome: &Outcome,
    not_before_ms: u64,
    now_ms: u64,
) -> Result<AfterAttempt, Error> {
    let attempt = lease.attempt();
    sqlx::query(
        "UPDATE runs SET state = ?, not_before_ms = ?, lease_node = NULL, lease_expires_at_ms = NULL, \
         updated_at = ? WHERE id = ?",
    )
    .bind(RunState::Queued.as_str())
    .bind(int(not_before_ms))
    .bind(int(now_ms))
    .bind(attempt.run.as_str())
    .execute(&mut *transaction)
    .await?;
    let data = json!({ "outcome": outcome, "not_before_ms": not_before_ms });
    let event = NewEvent::new(now_ms, EventType::RunRetryScheduled, data);
    let events = number_and_insert(transaction, &attempt.run, Some(attempt.number), &[event]).await?;
    Ok(AfterAttempt { state: RunState::Queued, events })
}

/// A run whose end somebody has asked for is not tried again. Queued, it would wait for a node only to
/// be cancelled by it.
async fn cancel_instead(
    transaction: &mut SqliteConnection,
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
    Ok(AfterAttempt { state, events: end_run(transaction, ending).await? })
}

/// The state machine's answer; a run that cannot go there is final.
pub(super) fn next(run: &RunId, state: RunState, transition: &Transition) -> Result<RunState, Error> {
    state.after(transition).map_err(|_| Error::AlreadyFinal { run: run.clone(), state })
}

async fn end_attempt(
    transaction: &mut SqliteConnection,
    lease: &Lease,
    outcome: &Outcome,
    now_ms: u64,
) -> Result<(), Error> {
    sqlx::query("UPDATE attempts SET outcome = ?, ended_at = ? WHERE run = ? AND number = ?")
        .bind(to_json(outcome))
        .bind(int(now_ms))
        .bind(lease.attempt().run.as_str())
        .bind(lease.attempt().number)
        .execute(transaction)
        .await?;
    Ok(())
}

async fn is_cancel_requested(transaction: &mut SqliteConnection, run: &RunId) -> Result<bool, Error> {
    Ok(sqlx::query_scalar("SELECT cancel_requested_at IS NOT NULL FROM runs WHERE id = ?")
        .bind(run.as_str())
        .fetch_one(transaction)
        .await?)
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

/// Gives the run its final state. `run.finished` is the last of its events, so that a reader who has seen
/// it has seen all but what became of the sandbox.
pub(super) async fn end_run(
    transaction: &mut SqliteConnection,
    ending: Ending<'_>,
) -> Result<Vec<Event>, Error> {
    let Ending { run, attempt, state, outcome, letter, now_ms } = ending;
    sqlx::query(
        "UPDATE runs SET state = ?, outcome = ?, dead_letter = ?, lease_node = NULL, \
         lease_expires_at_ms = NULL, updated_at = ?, finished_at = ? WHERE id = ?",
    )
    .bind(state.as_str())
    .bind(to_json(outcome))
    .bind(letter.is_some())
    .bind(int(now_ms))
    .bind(int(now_ms))
    .bind(run.as_str())
    .execute(&mut *transaction)
    .await?;
    let mut events = refuse_pending(transaction, run, now_ms).await?;
    if *outcome == Outcome::Cancelled {
        events.push(NewEvent::new(now_ms, EventType::RunCancelled, json!({})));
    }
    if let Some(letter) = letter {
        keep_letter(transaction, run, letter, now_ms).await?;
        let data = json!({ "error_class": letter.error_class });
        events.push(NewEvent::new(now_ms, EventType::RunDeadLettered, data));
    }
    let data = json!({ "state": state, "outcome": outcome });
    events.push(NewEvent::new(now_ms, EventType::RunFinished, data));
    number_and_insert(transaction, run, attempt, &events).await
}
