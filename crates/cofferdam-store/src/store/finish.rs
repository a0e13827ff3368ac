//! Ends an attempt: for good, or to try again.

use cofferdam_core::{DeadLetter, Event, EventType, NewEvent, Outcome, RunId, RunState, Transition};
use serde_json::json;

use super::Store;
use super::append::{append_new, number_and_insert};
use super::cancel::is_cancel_requested;
use super::events::read_event;
use super::evidence::keep;
use super::fence::held;
use super::letters::keep_letter;
use super::messages::refuse_pending;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::{finished, next};
use crate::lease::Lease;
use crate::record::{AfterAttempt, Left};
use crate::session::{Session, values};
use crate::stored::to_json;

impl Store {
    /// Ends the attempt and gives the run its final state, together with what the attempt leaves. Messages
    /// that still wait are refused. With a letter among what it leaves, the run is a dead letter. Asked again with the
    /// same words, by an owner that did not hear the answer, it says the same and changes nothing.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn finish(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        left: &Left,
        now_ms: u64,
    ) -> Result<AfterAttempt, Error> {
        let end = End { lease: lease.clone(), outcome: outcome.clone(), left: left.clone(), now_ms };
        let told = self.write(async move |session| end.finish(session).await).await?;
        if told.is_new {
            failpoint("store.finish");
        }
        Ok(told.after)
    }

    /// Ends the attempt and queues the run again, or cancels it if somebody has asked for its end meanwhile. Asked again
    /// with the same words, by an owner that did not hear the answer, it says the same and changes nothing.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn schedule_retry(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        not_before_ms: u64,
        left: &Left,
        now_ms: u64,
    ) -> Result<AfterAttempt, Error> {
        let end = End { lease: lease.clone(), outcome: outcome.clone(), left: left.clone(), now_ms };
        let told = self.write(async move |session| end.schedule_retry(session, not_before_ms).await).await?;
        if told.is_new {
            failpoint("store.schedule_retry");
        }
        Ok(told.after)
    }
}

/// The end of an attempt, as its owner tells it.
struct End {
    lease: Lease,
    outcome: Outcome,
    left: Left,
    now_ms: u64,
}

/// What telling of an end has done.
struct Told {
    after: AfterAttempt,
    /// Not if it was told before, in the same words.
    is_new: bool,
}

impl End {
    fn run(&self) -> &RunId {
        &self.lease.attempt().run
    }

    async fn finish(&self, session: &mut Session<'_>) -> Result<Told, Error> {
        let held = held(session, &self.lease).await?;
        if held.state_under(&self.lease)?.is_final() && self.was_told(session).await? {
            return self.told_before(session, held.state).await;
        }
        let transition = Transition::Finish(self.outcome.clone());
        let state = next(self.run(), held.require_running(&self.lease)?, &transition)?;
        let mut events = self.end_attempt(session).await?;
        let ending = Ending {
            run: self.run(),
            attempt: Some(self.lease.attempt().number),
            state,
            outcome: &self.outcome,
            letter: self.left.letter.as_ref(),
            now_ms: self.now_ms,
        };
        events.extend(end_run(session, ending).await?);
        Ok(Told { after: AfterAttempt { state, events }, is_new: true })
    }

    async fn schedule_retry(&self, session: &mut Session<'_>, not_before_ms: u64) -> Result<Told, Error> {
        let held = held(session, &self.lease).await?;
        if held.state_under(&self.lease)? != RunState::Running
            && self.was_told(session).await?
            && (held.state == RunState::Cancelled || self.is_due(session, not_before_ms).await?)
        {
            return self.told_before(session, held.state).await;
        }
        let queued = next(self.run(), held.require_running(&self.lease)?, &Transition::Retry)?;
        let mut stored = self.end_attempt(session).await?;
        let AfterAttempt { state, events } = if is_cancel_requested(session, self.run()).await? {
            self.cancel_instead(session, queued).await?
        } else {
            self.requeue(session, not_before_ms).await?
        };
        stored.extend(events);
        Ok(Told { after: AfterAttempt { state, events: stored }, is_new: true })
    }

    /// Records how the attempt ended and what it leaves.
    async fn end_attempt(&self, session: &mut Session<'_>) -> Result<Vec<Event>, Error> {
        let stored = append_new(session, &self.lease, &self.left.events).await?;
        keep(session, &self.lease, &self.left.artifacts).await?;
        session
            .execute(
                "UPDATE attempts SET outcome = ?1, ended_at = ?2 WHERE run = ?3 AND number = ?4",
                values![to_json(&self.outcome), self.now_ms, self.run(), self.lease.attempt().number],
            )
            .await?;
        Ok(stored)
    }

    async fn requeue(&self, session: &mut Session<'_>, not_before_ms: u64) -> Result<AfterAttempt, Error> {
        session
            .execute(
                "UPDATE runs SET state = ?1, not_before_ms = ?2, lease_node = NULL, lease_expires_at_ms = NULL, \
                 updated_at = ?3 WHERE id = ?4",
                values![RunState::Queued, not_before_ms, self.now_ms, self.run()],
            )
            .await?;
        let data = json!({ "outcome": self.outcome, "not_before_ms": not_before_ms });
        let event = NewEvent::new(self.now_ms, EventType::RunRetryScheduled, data);
        let attempt = Some(self.lease.attempt().number);
        let events = number_and_insert(session, self.run(), attempt, &[event]).await?;
        Ok(AfterAttempt { state: RunState::Queued, events })
    }

    /// A run whose end somebody has asked for is not tried again. Queued, it would wait for a node only to
    /// be cancelled by it.
    async fn cancel_instead(
        &self,
        session: &mut Session<'_>,
        queued: RunState,
    ) -> Result<AfterAttempt, Error> {
        let state = next(self.run(), queued, &Transition::CancelQueued)?;
        let ending = Ending {
            run: self.run(),
            attempt: Some(self.lease.attempt().number),
            state,
            outcome: &Outcome::Cancelled,
            letter: None,
            now_ms: self.now_ms,
        };
        Ok(AfterAttempt { state, events: end_run(session, ending).await? })
    }

    /// Whether the attempt has ended in just this way: its owner asks again, since it never heard the answer.
    async fn was_told(&self, session: &mut Session<'_>) -> Result<bool, Error> {
        let ended: Option<Option<Outcome>> = session
            .optional(
                "SELECT outcome FROM attempts WHERE run = ?1 AND number = ?2 AND ended_at = ?3",
                values![self.run(), self.lease.attempt().number, self.now_ms],
                |row| row.json_some(self.run().as_str(), "outcome", "outcome"),
            )
            .await?;
        Ok(ended.flatten().as_ref() == Some(&self.outcome))
    }

    async fn is_due(&self, session: &mut Session<'_>, not_before_ms: u64) -> Result<bool, Error> {
        let sql = "SELECT not_before_ms = ?1 FROM runs WHERE id = ?2";
        session.one(sql, values![not_before_ms, self.run()], |row| row.first()).await
    }

    /// What was answered the first time.
    async fn told_before(&self, session: &mut Session<'_>, state: RunState) -> Result<Told, Error> {
        let events = session
            .all(
                "SELECT seq, at, type, attempt, data FROM events WHERE run = ?1 AND attempt = ?2 AND at >= ?3 \
                 AND substr(type, 1, 8) <> 'sandbox.' ORDER BY seq",
                values![self.run(), self.lease.attempt().number, self.now_ms],
                |row| read_event(self.run(), row),
            )
            .await?;
        Ok(Told { after: AfterAttempt { state, events }, is_new: false })
    }
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
pub(super) async fn end_run(session: &mut Session<'_>, ending: Ending<'_>) -> Result<Vec<Event>, Error> {
    let Ending { run, attempt, state, outcome, letter, now_ms } = ending;
    session
        .execute(
            "UPDATE runs SET state = ?1, outcome = ?2, dead_letter = ?3, lease_node = NULL, \
             lease_expires_at_ms = NULL, updated_at = ?4, finished_at = ?4 WHERE id = ?5",
            values![state, to_json(outcome), letter.is_some(), now_ms, run],
        )
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
    number_and_insert(session, run, attempt, &events).await
}
