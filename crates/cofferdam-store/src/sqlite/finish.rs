//! Ends an attempt: for good, or to try again.

use cofferdam_core::{DeadLetter, Event, EventType, NewEvent, Outcome, RunId, RunState, Transition};
use serde_json::json;
use sqlx::SqliteConnection;

use super::append::{append_new, number_and_insert};
use super::artifacts::keep;
use super::events::read_event;
use super::fence::held;
use super::letters::keep_letter;
use super::messages::refuse_pending;
use super::{Sqlite, begin, from_json, int, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::{finished, next};
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
        let held = held(&mut transaction, lease).await?;
        if held.state_under(lease)?.is_final() && ended_so(&mut transaction, lease, outcome, now_ms).await? {
            return told_at_the_end(&mut transaction, lease, held.state, now_ms).await;
        }
        let state = next(run, held.require_running(lease)?, &Transition::Finish(outcome.clone()))?;
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
        let held = held(&mut transaction, lease).await?;
        if held.state_under(lease)? != RunState::Running
            && ended_so(&mut transaction, lease, outcome, now_ms).await?
            && (held.state == RunState::Cancelled || is_due(&mut transaction, lease, not_before_ms).await?)
        {
            return told_at_the_end(&mut transaction, lease, held.state, now_ms).await;
        }
        let queued = next(&lease.attempt().run, held.require_running(lease)?, &Transition::Retry)?;
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

/// Whether the lease's attempt has ended in just this way: its owner asks again, since it never heard the answer.
async fn ended_so(
    transaction: &mut SqliteConnection,
    lease: &Lease,
    outcome: &Outcome,
    now_ms: u64,
) -> Result<bool, Error> {
    let ended: Option<String> =
        sqlx::query_scalar("SELECT outcome FROM attempts WHERE run = ? AND number = ? AND ended_at = ?")
            .bind(lease.attempt().run.as_str())
            .bind(lease.attempt().number)
            .bind(int(now_ms))
            .fetch_optional(transaction)
            .await?;
    let ended = ended.map(|text| from_json::<Outcome>(lease.attempt().run.as_str(), "outcome", &text));
    Ok(ended.transpose()?.as_ref() == Some(outcome))
}

async fn is_due(
    transaction: &mut SqliteConnection,
    lease: &Lease,
    not_before_ms: u64,
) -> Result<bool, Error> {
    Ok(sqlx::query_scalar("SELECT not_before_ms = ? FROM runs WHERE id = ?")
        .bind(int(not_before_ms))
        .bind(lease.attempt().run.as_str())
        .fetch_one(transaction)
        .await?)
}

async fn told_at_the_end(
    transaction: &mut SqliteConnection,
    lease: &Lease,
    state: RunState,
    now_ms: u64,
) -> Result<AfterAttempt, Error> {
    let rows = sqlx::query(
        "SELECT seq, at, type, attempt, data FROM events WHERE run = ? AND attempt = ? AND at >= ? \
         AND substr(type, 1, 8) <> 'sandbox.' ORDER BY seq",
    )
    .bind(lease.attempt().run.as_str())
    .bind(lease.attempt().number)
    .bind(int(now_ms))
    .fetch_all(transaction)
    .await?;
    let events = rows.iter().map(|row| read_event(&lease.attempt().run, row)).collect::<Result<_, _>>()?;
    Ok(AfterAttempt { state, events })
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

/// Gives the run its final state.
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
    events.push(finished(state, outcome, now_ms));
    number_and_insert(transaction, run, attempt, &events).await
}
