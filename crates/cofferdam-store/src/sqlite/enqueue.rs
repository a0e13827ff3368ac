//! Accepts a run.

use cofferdam_core::{AgentName, EventType, Lane, NewEvent, PlaceId, ProjectId, RunId, RunRequest, RunState};
use rusqlite::{Connection, params};
use serde_json::json;

use super::append::number_and_insert;
use super::{Sqlite, execute, from_json, int, optional, to_json};
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
        let (request, key) = (request.clone(), idempotency_key.map(str::to_owned));
        let enqueued = self
            .write(move |transaction| {
                let key = key.as_deref();
                if let Some(first) = earlier(transaction, &request, key)? {
                    return Ok(Enqueued { run: first.answers(&request, key)?, created: false });
                }
                insert(transaction, &request, key, now_ms)?;
                let queued = NewEvent::new(now_ms, EventType::RunQueued, json!({}));
                number_and_insert(transaction, &request.id, None, &[queued])?;
                Ok(Enqueued { run: request.id, created: true })
            })
            .await?;
        if enqueued.created {
            failpoint("store.enqueue");
        }
        Ok(enqueued)
    }
}

fn insert(
    transaction: &Connection,
    request: &RunRequest,
    key: Option<&str>,
    now_ms: u64,
) -> Result<(), Error> {
    let placement = &request.placement;
    execute(
        transaction,
        "INSERT INTO runs (id, request, idempotency_key, state, claimable_by, not_before_ms, \
         created_at, updated_at, role, priority, lane, project, agent, place, mode, timeout_ms, conversation, \
         direct_path, replay_of) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        params![
            request.id.as_str(),
            to_json(request),
            key,
            RunState::Queued.as_str(),
            request.claimable_by.as_ref().map(|node| node.as_str()),
            int(now_ms),
            placement.role.as_str(),
            placement.priority.get(),
            placement.lane.as_ref().map(Lane::as_str),
            placement.project.as_ref().map(ProjectId::as_str),
            placement.agent.as_ref().map(AgentName::as_str),
            placement.place.as_ref().map(PlaceId::as_str),
            request.policy.mode.to_string(),
            int(request.policy.timeout_ms),
            request.conversation.as_ref().map(|conversation| conversation.agent.as_str()),
            direct_path(request),
            request.replay_of.as_ref().map(RunId::as_str),
        ],
    )?;
    Ok(())
}

/// The run that was accepted before under this key, or this id.
fn earlier(
    transaction: &Connection,
    request: &RunRequest,
    key: Option<&str>,
) -> Result<Option<Earlier>, Error> {
    optional(
        transaction,
        "SELECT id, request, idempotency_key FROM runs WHERE idempotency_key = ?2 OR id = ?1 \
         ORDER BY idempotency_key IS ?2 DESC LIMIT 1",
        params![request.id.as_str(), key],
        |row| {
            let (id, request): (String, String) = (row.get("id")?, row.get("request")?);
            Ok(Earlier { request: from_json(&id, "request", &request)?, key: row.get("idempotency_key")? })
        },
    )
}
