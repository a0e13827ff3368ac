//! Asks for a run's end.

use cofferdam_core::{EventType, NewEvent, Outcome, RunId, RunState, Transition};
use cofferdam_mandate::Mandate;
use serde_json::json;

use super::fence::state_of;
use super::finish::{Ending, end_run};
use super::{Store, audit};
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
    pub async fn request_cancel(&self, mandate: &Mandate, run: &RunId) -> Result<CancelAnswer, Error> {
        let (mandate, run) = (mandate.clone(), run.clone());
        let answer = self
            .write(async move |session| match state_of(session, &run).await? {
                RunState::Queued => cancel_queued(session, &mandate, &run).await,
                RunState::Running => ask(session, &mandate, &run).await,
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

async fn cancel_queued(
    session: &mut Session<'_>,
    mandate: &Mandate,
    run: &RunId,
) -> Result<CancelAnswer, Error> {
    let now_ms = mandate.at_ms();
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
    audit::record(session, mandate).await?;
    Ok(CancelAnswer::Cancelled)
}

async fn ask(session: &mut Session<'_>, mandate: &Mandate, run: &RunId) -> Result<CancelAnswer, Error> {
    if mark(session, run, mandate.at_ms()).await? == Marked::Now {
        let event = NewEvent::new(mandate.at_ms(), EventType::RunCancelRequested, json!({}));
        audit::record_with_event(session, mandate, run, &event).await?;
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
