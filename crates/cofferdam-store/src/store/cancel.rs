//! Asks for a run's end.

use cofferdam_core::{EventType, NewEvent, Outcome, RunId, RunState, Transition};
use serde_json::json;

use super::Store;
use super::append::number_and_insert;
use super::fence::state_of;
use super::finish::{Ending, end_run};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::next;
use crate::record::CancelAnswer;
use crate::session::{Session, values};

impl Store {
    /// Asks for a run's end. A queued run ends at once; a running one when its node has seen the request.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn request_cancel(&self, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
        let run = run.clone();
        let answer = self
            .write(async move |session| match state_of(session, &run).await? {
                RunState::Queued => cancel_queued(session, &run, now_ms).await,
                RunState::Running => ask(session, &run, now_ms).await,
                state @ (RunState::Succeeded
                | RunState::Failed
                | RunState::Cancelled
                | RunState::TimedOut) => Ok(CancelAnswer::AlreadyFinal(state)),
            })
            .await?;
        match answer {
            CancelAnswer::Cancelled | CancelAnswer::Requested => failpoint("store.request_cancel"),
            CancelAnswer::AlreadyFinal(_) => {}
        }
        Ok(answer)
    }

    /// Whether somebody has asked for the run's end.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn cancel_requested(&self, run: &RunId) -> Result<bool, Error> {
        let run = run.clone();
        self.read(async move |session| is_cancel_requested(session, &run).await).await
    }
}

pub(super) async fn is_cancel_requested(session: &mut Session<'_>, run: &RunId) -> Result<bool, Error> {
    let sql = "SELECT cancel_requested_at IS NOT NULL FROM runs WHERE id = ?1";
    let asked = session.optional(sql, values![run], |row| row.first()).await?;
    asked.ok_or_else(|| Error::NotFound { run: run.clone() })
}

async fn cancel_queued(session: &mut Session<'_>, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
    mark(session, run, now_ms).await?;
    let ending = Ending {
        run,
        attempt: None,
        state: next(run, RunState::Queued, &Transition::CancelQueued)?,
        outcome: &Outcome::Cancelled,
        letter: None,
        now_ms,
    };
    end_run(session, ending).await?;
    Ok(CancelAnswer::Cancelled)
}

async fn ask(session: &mut Session<'_>, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
    if mark(session, run, now_ms).await? == Marked::Now {
        let event = NewEvent::new(now_ms, EventType::RunCancelRequested, json!({}));
        number_and_insert(session, run, None, &[event]).await?;
    }
    Ok(CancelAnswer::Requested)
}

#[derive(PartialEq)]
enum Marked {
    Now,
    Before,
}

async fn mark(session: &mut Session<'_>, run: &RunId, now_ms: u64) -> Result<Marked, Error> {
    let sql = "UPDATE runs SET cancel_requested_at = ?1, updated_at = ?1 \
               WHERE id = ?2 AND cancel_requested_at IS NULL";
    let changed = session.execute(sql, values![now_ms, run]).await?;
    Ok(if changed > 0 { Marked::Now } else { Marked::Before })
}
