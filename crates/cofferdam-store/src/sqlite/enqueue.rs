//! Accepts a run.

use cofferdam_core::{EventType, NewEvent, RunId, RunRequest, RunState};
use serde_json::json;
use sqlx::{Row, SqliteConnection};

use super::append::number_and_insert;
use super::{Sqlite, begin, from_json, int, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::record::Enqueued;

impl Sqlite {
    pub(crate) async fn enqueue(
        &self,
        request: &RunRequest,
        idempotency_key: Option<&str>,
        now_ms: u64,
    ) -> Result<Enqueued, Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        if let Some(key) = idempotency_key
            && let Some(run) = run_of_key(&mut transaction, key, request).await?
        {
            return Ok(Enqueued { run, created: false });
        }
        sqlx::query(
            "INSERT INTO runs (id, request, idempotency_key, state, claimable_by, not_before_ms, \
             created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(request.id.as_str())
        .bind(to_json(request))
        .bind(idempotency_key)
        .bind(RunState::Queued.as_str())
        .bind(request.claimable_by.as_ref().map(|node| node.as_str()))
        .bind(int(now_ms))
        .bind(int(now_ms))
        .bind(int(now_ms))
        .execute(&mut *transaction)
        .await?;
        let queued = NewEvent::new(now_ms, EventType::RunQueued, json!({}));
        number_and_insert(&mut transaction, &request.id, None, &[queued]).await?;
        transaction.commit().await?;
        failpoint("store.enqueue");
        Ok(Enqueued { run: request.id.clone(), created: true })
    }
}

/// The run that this key has made, if it was for the same request.
///
/// The requests themselves are compared and not a hash of their text, so that a request that an older
/// program wrote still equals the same request of today's.
async fn run_of_key(
    transaction: &mut SqliteConnection,
    key: &str,
    request: &RunRequest,
) -> Result<Option<RunId>, Error> {
    let row = sqlx::query("SELECT id, request FROM runs WHERE idempotency_key = ?")
        .bind(key)
        .fetch_optional(transaction)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let first: RunRequest = from_json(row.try_get("id")?, "request", row.try_get("request")?)?;
    if first == (RunRequest { id: first.id.clone(), ..request.clone() }) {
        Ok(Some(first.id))
    } else {
        Err(Error::IdempotencyMismatch { key: key.to_owned(), run: first.id })
    }
}
