//! Asks for a run's end.

use cofferdam_core::{EventType, NewEvent, Outcome, RunId, RunState, Transition};
use rusqlite::{Connection, params};
use serde_json::json;

use super::append::number_and_insert;
use super::fence::state_of;
use super::finish::{Ending, end_run};
use super::{Sqlite, execute, int, optional};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::next;
use crate::record::CancelAnswer;

impl Sqlite {
    pub(crate) async fn request_cancel(&self, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
        let run = run.clone();
        let answer = self
            .write(move |transaction| match state_of(transaction, &run)? {
                RunState::Queued => cancel_queued(transaction, &run, now_ms),
                RunState::Running => ask(transaction, &run, now_ms),
                state => Ok(CancelAnswer::AlreadyFinal(state)),
            })
            .await?;
        if !matches!(answer, CancelAnswer::AlreadyFinal(_)) {
            failpoint("store.request_cancel");
        }
        Ok(answer)
    }

    pub(crate) async fn cancel_requested(&self, run: &RunId) -> Result<bool, Error> {
        let run = run.clone();
        self.read(move |connection| {
            let sql = "SELECT cancel_requested_at IS NOT NULL FROM runs WHERE id = ?";
            optional(connection, sql, params![run.as_str()], |row| Ok(row.get(0)?))?
                .ok_or(Error::NotFound { run })
        })
        .await
    }
}

fn cancel_queued(transaction: &Connection, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
    mark(transaction, run, now_ms)?;
    let ending = Ending {
        run,
        attempt: None,
        state: next(run, RunState::Queued, &Transition::CancelQueued)?,
        outcome: &Outcome::Cancelled,
        letter: None,
        now_ms,
    };
    end_run(transaction, ending)?;
    Ok(CancelAnswer::Cancelled)
}

fn ask(transaction: &Connection, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
    if mark(transaction, run, now_ms)? == Marked::Now {
        let event = NewEvent::new(now_ms, EventType::RunCancelRequested, json!({}));
        number_and_insert(transaction, run, None, &[event])?;
    }
    Ok(CancelAnswer::Requested)
}

#[derive(PartialEq)]
enum Marked {
    Now,
    Before,
}

fn mark(transaction: &Connection, run: &RunId, now_ms: u64) -> Result<Marked, Error> {
    let changed = execute(
        transaction,
        "UPDATE runs SET cancel_requested_at = ?, updated_at = ? \
         WHERE id = ? AND cancel_requested_at IS NULL",
        params![int(now_ms), int(now_ms), run.as_str()],
    )?;
    Ok(if changed > 0 { Marked::Now } else { Marked::Before })
}
