//! Accepts a run.

use cofferdam_core::{AgentName, EventType, Lane, NewEvent, PlaceId, ProjectId, RunId, RunRequest, RunState};
use serde_json::json;
use sqlx::{Row, SqliteConnection};

use super::append::number_and_insert;
use super::{Sqlite, begin, from_json, int, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::record::Enqueued;
use crate::repeated::Earlier;
use crate::stored::direct_path;

impl Sqlite {
    pub(crate) async fn enqueue(
        &self,
        request: &RunRequest,
        idempotency_key: Option<&str>,
        now_ms: u64,
    ) -> Result<Enqueued, Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        if let Some(first) = earlier(&mut transaction, request, idempotency_key).await? {
            return Ok(Enqueued { run: first.answers(request, idempotency_key)?, created: false });
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

/// The run that was accepted before under this key, or this id.
async fn earlier(
    transaction: &mut SqliteConnection,
    request: &RunRequest,
    key: Option<&str>,
) -> Result<Option<Earlier>, Error> {
    let row = sqlx::query(
        "SELECT id, request, idempotency_key FROM runs WHERE idempotency_key = ?2 OR id = ?1 \
         ORDER BY idempotency_key IS ?2 DESC LIMIT 1",
    )
    .bind(request.id.as_str())
    .bind(key)
    .fetch_optional(transaction)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Earlier {
        request: from_json(row.try_get("id")?, "request", row.try_get("request")?)?,
        key: row.try_get("idempotency_key")?,
    }))
}
