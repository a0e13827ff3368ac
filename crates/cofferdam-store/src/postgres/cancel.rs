//! Asks for a run's end.

use cofferdam_core::{EventType, NewEvent, Outcome, RunId, RunState, Transition};
use serde_json::json;

use super::append::number_and_insert;
use super::fence::state_of;
use super::finish::{Ending, end_run};
use super::session::Session;
use super::{Postgres, int};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::next;
use crate::record::CancelAnswer;

impl Postgres {
    pub(crate) async fn request_cancel(&self, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
        let answer = self
            .write(|mut session| async move {
                let answer = match state_of(&mut session, run).await? {
                    RunState::Queued => cancel_queued(&mut session, run, now_ms).await?,
                    RunState::Running => ask(&mut session, run, now_ms).await?,
                    state @ (RunState::Succeeded
                    | RunState::Failed
                    | RunState::Cancelled
                    | RunState::TimedOut) => CancelAnswer::AlreadyFinal(state),
                };
                session.done(answer)
            })
            .await?;
        match answer {
            CancelAnswer::Cancelled | CancelAnswer::Requested => failpoint("store.request_cancel"),
            CancelAnswer::AlreadyFinal(_) => {}
        }
        Ok(answer)
    }

    pub(crate) async fn cancel_requested(&self, run: &RunId) -> Result<bool, Error> {
        let asked: Option<bool> = self
            .read(|mut session| async move {
                Ok(session
                    .scalar("SELECT cancel_requested_at IS NOT NULL FROM runs WHERE id = $1")
                    .bind(run.as_str())
                    .fetch_optional(session.connection())
                    .await?)
            })
            .await?;
        asked.ok_or_else(|| Error::NotFound { run: run.clone() })
    }
}

async fn cancel_queued(session: &mut Session, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
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

async fn ask(session: &mut Session, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
    if mark(session, run, now_ms).await? == Marked::Now {
        let event = NewEvent::new(now_ms, EventType::RunCancelRequested, json!({}));
        number_and_insert(session, run, None, &[&event]).await?;
    }
    Ok(CancelAnswer::Requested)
}

#[derive(PartialEq)]
enum Marked {
    Now,
    Before,
}

async fn mark(session: &mut Session, run: &RunId, now_ms: u64) -> Result<Marked, Error> {
    let done = session
        .query(
            "UPDATE runs SET cancel_requested_at = $1, updated_at = $1 \
             WHERE id = $2 AND cancel_requested_at IS NULL",
        )
        .bind(int(now_ms))
        .bind(run.as_str())
        .execute(session.connection())
        .await?;
    Ok(if done.rows_affected() > 0 { Marked::Now } else { Marked::Before })
}
