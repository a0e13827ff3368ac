//! Accepts a run.

use cofferdam_core::{
    AgentName, EventType, Lane, NewEvent, PlaceId, ProjectId, RunId, RunRequest, RunState, Source,
    WorkspaceKind,
};
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
             created_at, updated_at, role, priority, lane, project, agent, place, mode, timeout_ms, conversation, \
             direct_path, replay_of) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(request.id.as_str())
        .bind(to_json(request))
        .bind(idempotency_key)
        .bind(RunState::Queued.as_str())
        .bind(request.claimable_by.as_ref().map(|node| node.as_str()))
        .bind(int(now_ms))
        .bind(int(now_ms))
        .bind(int(now_ms))
        .bind(request.placement.role.as_str())
        .bind(request.placement.priority.get())
        .bind(request.placement.lane.as_ref().map(Lane::as_str))
        .bind(request.placement.project.as_ref().map(ProjectId::as_str))
        .bind(request.placement.agent.as_ref().map(AgentName::as_str))
        .bind(request.placement.place.as_ref().map(PlaceId::as_str))
        .bind(request.policy.mode.to_string())
        .bind(int(request.policy.timeout_ms))
        .bind(request.conversation.as_ref().map(|conversation| conversation.agent.as_str()))
        .bind(direct_path(request))
        .bind(request.replay_of.as_ref().map(RunId::as_str))
        .execute(&mut *transaction)
        .await?;
        let queued = NewEvent::new(now_ms, EventType::RunQueued, json!({}));
        number_and_insert(&mut transaction, &request.id, None, &[queued]).await?;
        transaction.commit().await?;
        failpoint("store.enqueue");
        Ok(Enqueued { run: request.id.clone(), created: true })
    }
}

/// The folder that a run works in itself. With a slash at its end, a folder above or below is a beginning of it.
pub(crate) fn direct_path(request: &RunRequest) -> Option<String> {
    match (&request.source, request.workspace) {
        (Source::Local { path }, WorkspaceKind::Direct) => Some(format!("{}/", path.to_string_lossy())),
        (Source::Local { .. }, WorkspaceKind::Overlay) | (Source::Empty | Source::Git { .. }, _) => None,
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
