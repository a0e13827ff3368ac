//! Ends an attempt: for good, or to try again.

use cofferdam_core::{DeadLetter, Event, EventType, NewEvent, Outcome, RunId, RunState, Transition};
use serde_json::json;

use super::append::{append_new, number_and_insert};
use super::artifacts::keep;
use super::events::read_event;
use super::fence::held;
use super::letters::keep_letter;
use super::messages::refuse_pending;
use super::session::Session;
use super::{Postgres, from_json, int, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::{finished, next};
use crate::lease::Lease;
use crate::record::{AfterAttempt, Left};

impl Postgres {
    pub(crate) async fn finish(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        left: &Left,
        now_ms: u64,
    ) -> Result<AfterAttempt, Error> {
        let run = &lease.attempt().run;
        let after = self
            .write(|mut session| async move {
                let held = held(&mut session, lease).await?;
                if held.state_under(lease)?.is_final()
                    && ended_so(&mut session, lease, outcome, now_ms).await?
                {
                    let after = told_at_the_end(&mut session, lease, held.state, now_ms).await?;
                    return session.done(after);
                }
                let state = next(run, held.require_running(lease)?, &Transition::Finish(outcome.clone()))?;
                let mut events = append_new(&mut session, lease, &left.events).await?;
                keep(&mut session, lease, &left.artifacts).await?;
                end_attempt(&mut session, lease, outcome, now_ms).await?;
                let letter = left.letter.as_ref();
                let attempt = Some(lease.attempt().number);
                let ending = Ending { run, attempt, state, outcome, letter, now_ms };
                events.extend(end_run(&mut session, ending).await?);
                session.done(AfterAttempt { state, events })
            })
            .await?;
        failpoint("store.finish");
        Ok(after)
    }

    pub(crate) async fn schedule_retry(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        not_before_ms: u64,
        left: &Left,
        now_ms: u64,
    ) -> Result<AfterAttempt, Error> {
        let run = &lease.attempt().run;
        let after = self
            .write(|mut session| async move {
                let held = held(&mut session, lease).await?;
                if held.state_under(lease)? != RunState::Running
                    && ended_so(&mut session, lease, outcome, now_ms).await?
                    && (held.state == RunState::Cancelled
                        || is_due(&mut session, lease, not_before_ms).await?)
                {
                    let after = told_at_the_end(&mut session, lease, held.state, now_ms).await?;
                    return session.done(after);
                }
                let queued = next(run, held.require_running(lease)?, &Transition::Retry)?;
                let mut stored = append_new(&mut session, lease, &left.events).await?;
                keep(&mut session, lease, &left.artifacts).await?;
                end_attempt(&mut session, lease, outcome, now_ms).await?;
                let AfterAttempt { state, events } = if is_cancel_requested(&mut session, run).await? {
                    cancel_instead(&mut session, lease, queued, now_ms).await?
                } else {
                    requeue(&mut session, lease, outcome, not_before_ms, now_ms).await?
                };
                stored.extend(events);
                session.done(AfterAttempt { state, events: stored })
            })
            .await?;
        failpoint("store.schedule_retry");
        Ok(after)
    }
}

async fn requeue(
    session: &mut Session,
    lease: &Lease,
    outcome: &Outcome,
    not_before_ms: u64,
    now_ms: u64,
) -> Result<AfterAttempt, Error> {
    let attempt = lease.attempt();
    session
        .query(
            "UPDATE runs SET state = $1, not_before_ms = $2, lease_node = NULL, lease_expires_at_ms = NULL, \
             updated_at = $3 WHERE id = $4",
        )
        .bind(RunState::Queued.as_str())
        .bind(int(not_before_ms))
        .bind(int(now_ms))
        .bind(attempt.run.as_str())
        .execute(session.connection())
        .await?;
    let data = json!({ "outcome": outcome, "not_before_ms": not_before_ms });
    let event = NewEvent::new(now_ms, EventType::RunRetryScheduled, data);
    let events = number_and_insert(session, &attempt.run, Some(attempt.number), &[&event]).await?;
    Ok(AfterAttempt { state: RunState::Queued, events })
}

/// A run whose end somebody has asked for is not tried again. Queued, it would wait for a node only to
/// be cancelled by it.
async fn cancel_instead(
    session: &mut Session,
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
    Ok(AfterAttempt { state, events: end_run(session, ending).await? })
}

/// Whether the lease's attempt has ended in just this way: its owner asks again, since it never heard the answer.
async fn ended_so(
    session: &mut Session,
    lease: &Lease,
    outcome: &Outcome,
    now_ms: u64,
) -> Result<bool, Error> {
    let ended: Option<String> = session
        .scalar("SELECT outcome FROM attempts WHERE run = $1 AND number = $2 AND ended_at = $3")
        .bind(lease.attempt().run.as_str())
        .bind(i64::from(lease.attempt().number))
        .bind(int(now_ms))
        .fetch_optional(session.connection())
        .await?;
    let ended = ended.map(|text| from_json::<Outcome>(lease.attempt().run.as_str(), "outcome", &text));
    Ok(ended.transpose()?.as_ref() == Some(outcome))
}

async fn is_due(session: &mut Session, lease: &Lease, not_before_ms: u64) -> Result<bool, Error> {
    Ok(session
        .scalar("SELECT not_before_ms = $1 FROM runs WHERE id = $2")
        .bind(int(not_before_ms))
        .bind(lease.attempt().run.as_str())
        .fetch_one(session.connection())
        .await?)
}

async fn told_at_the_end(
    session: &mut Session,
    lease: &Lease,
    state: RunState,
    now_ms: u64,
) -> Result<AfterAttempt, Error> {
    let rows = session
        .query(
            "SELECT seq, at, type, attempt, data FROM events WHERE run = $1 AND attempt = $2 AND at >= $3 \
             AND NOT starts_with(type, 'sandbox.') ORDER BY seq",
        )
        .bind(lease.attempt().run.as_str())
        .bind(i64::from(lease.attempt().number))
        .bind(int(now_ms))
        .fetch_all(session.connection())
        .await?;
    let events = rows.iter().map(|row| read_event(&lease.attempt().run, row)).collect::<Result<_, _>>()?;
    Ok(AfterAttempt { state, events })
}

async fn end_attempt(
    session: &mut Session,
    lease: &Lease,
    outcome: &Outcome,
    now_ms: u64,
) -> Result<(), Error> {
    session
        .query("UPDATE attempts SET outcome = $1, ended_at = $2 WHERE run = $3 AND number = $4")
        .bind(to_json(outcome))
        .bind(int(now_ms))
        .bind(lease.attempt().run.as_str())
        .bind(i64::from(lease.attempt().number))
        .execute(session.connection())
        .await?;
    Ok(())
}

async fn is_cancel_requested(session: &mut Session, run: &RunId) -> Result<bool, Error> {
    Ok(session
        .scalar("SELECT cancel_requested_at IS NOT NULL FROM runs WHERE id = $1")
        .bind(run.as_str())
        .fetch_one(session.connection())
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
pub(super) async fn end_run(session: &mut Session, ending: Ending<'_>) -> Result<Vec<Event>, Error> {
    let Ending { run, attempt, state, outcome, letter, now_ms } = ending;
    session
        .query(
            "UPDATE runs SET state = $1, outcome = $2, dead_letter = $3, lease_node = NULL, \
             lease_expires_at_ms = NULL, updated_at = $4, finished_at = $4 WHERE id = $5",
        )
        .bind(state.as_str())
        .bind(to_json(outcome))
        .bind(letter.is_some())
        .bind(int(now_ms))
        .bind(run.as_str())
        .execute(session.connection())
        .await?;
    let mut events = refuse_pending(session, run, now_ms).await?;
    if *outcome == Outcome::Cancelled {
        events.push(NewEvent::new(now_ms, EventType::RunCancelled, json!({})));
    }
    if let Some(letter) = letter {
        keep_letter(session, run, letter, now_ms).await?;
        let data = json!({ "error_class": letter.error_class });
        events.push(NewEvent::new(now_ms, EventType::RunDeadLettered, data));
    }
    events.push(finished(state, outcome, now_ms));
    number_and_insert(session, run, attempt, &events.iter().collect::<Vec<_>>()).await
}
