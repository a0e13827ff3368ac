//! Asks for a run's end.

use cofferdam_core::{EventType, NewEvent, Outcome, RunId, RunState, Transition};
use serde_json::json;
use sqlx::SqliteConnection;

use super::append::number_and_insert;
use super::fence::state_of;
use super::finish::{Ending, end_run};
use super::{Sqlite, begin, int};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::next;
use crate::record::CancelAnswer;

impl Sqlite {
    pub(crate) async fn request_cancel(&self, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        let answer = match state_of(&mut transaction, run).await? {
            RunState::Queued => cancel_queued(&mut transaction, run, now_ms).await?,
            RunState::Running => ask(&mut transaction, run, now_ms).await?,
            state => return Ok(CancelAnswer::AlreadyFinal(state)),
        };
        transaction.commit().await?;
        failpoint("store.request_cancel");
        Ok(answer)
    }

    pub(crate) async fn cancel_requested(&self, run: &RunId) -> Result<bool, Error> {
        let asked: Option<bool> =
            sqlx::query_scalar("SELECT cancel_requested_at IS NOT NULL FROM runs WHERE id = ?")
                .bind(run.as_str())
                .fetch_optional(self.readers())
                .await?;
        asked.ok_or_else(|| Error::NotFound { run: run.clone() })
    }
}

async fn cancel_queued(
    transaction: &mut SqliteConnection,
    run: &RunId,
    now_ms: u64,
) -> Result<CancelAnswer, Error> {
    mark(transaction, run, now_ms).await?;
    let ending = Ending {
        run,
        attempt: None,
        state: next(run, RunState::Queued, &Transition::CancelQueued)?,
        outcome: &Outcome::Cancelled,
        letter: None,
        now_ms,
    };
    end_run(transaction, ending).await?;
    Ok(CancelAnswer::Cancelled)
}

async fn ask(transaction: &mut SqliteConnection, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
    if mark(transaction, run, now_ms).await? == Marked::Now {
        let event = NewEvent::new(now_ms, EventType::RunCancelRequested, json!({}));
        number_and_insert(transaction, run, None, &[event]).await?;
    }
    Ok(CancelAnswer::Requested)
}

#[derive(PartialEq)]
enum Marked {
    Now,
    Before,
}

async fn mark(transaction: &mut SqliteConnection, run: &RunId, now_ms: u64) -> Result<Marked, Error> {
    let done = sqlx::query(
        "UPDATE runs SET cancel_requested_at = ?, updated_at = ? WHERE id = ? AND cancel_requested_at IS NULL",
    )
    .bind(int(now_ms))
    .bind(int(now_ms))
    .bind(run.as_str())
    .execute(transaction)
    .await?;
    Ok(if done.rows_affected() > 0 { Marked::Now } else { Marked::Before })
}
