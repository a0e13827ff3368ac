//! Accepts a run.

use cofferdam_core::{AgentName, EventType, Lane, NewEvent, PlaceId, ProjectId, RunId, RunRequest, RunState};
use serde_json::json;
use sqlx::Row;

use super::append::number_and_insert;
use super::session::Session;
use super::{Postgres, from_json, int, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::record::Enqueued;
use crate::repeated::Earlier;
use crate::stored::direct_path;

impl Postgres {
    pub(crate) async fn enqueue(
        &self,
        request: &RunRequest,
        idempotency_key: Option<&str>,
        now_ms: u64,
    ) -> Result<Enqueued, Error> {
        let enqueued = self
            .write(|mut session| async move {
                line_up(&mut session, request).await?;
                if insert(&mut session, request, idempotency_key, now_ms).await? == Inserted::Yes {
                    let queued = NewEvent::new(now_ms, EventType::RunQueued, json!({}));
                    number_and_insert(&mut session, &request.id, None, &[&queued]).await?;
                    return session.done(Enqueued { run: request.id.clone(), created: true });
                }
                let first = earlier(&mut session, request, idempotency_key).await?;
                session.done(Enqueued { run: first, created: false })
            })
            .await?;
        if enqueued.created {
            failpoint("store.enqueue");
        }
        Ok(enqueued)
    }
}

/// Messages to one agent are accepted one after the other, so that a later one is never seen before an earlier one.
async fn line_up(session: &mut Session, request: &RunRequest) -> Result<(), Error> {
    let Some(conversation) = &request.conversation else { return Ok(()) };
    session
        .query("SELECT pg_advisory_xact_lock(hashtextextended('conversation ' || $1, 0))")
        .bind(conversation.agent.as_str())
        .execute(session.connection())
        .await?;
    Ok(())
}

#[derive(PartialEq)]
enum Inserted {
    Yes,
    /// There is a run of this id or key.
    No,
}

async fn insert(
    session: &mut Session,
    request: &RunRequest,
    idempotency_key: Option<&str>,
    now_ms: u64,
) -> Result<Inserted, Error> {
    // Waits for another transaction that is about to use the same key.
    let done = session
        .query(
            "INSERT INTO runs (id, request, idempotency_key, state, claimable_by, not_before_ms, \
             created_at, updated_at, role, priority, lane, project, agent, place, mode, timeout_ms, conversation, \
             direct_path, replay_of) \
             VALUES ($1, $2, $3, $4, $5, $6, $6, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) \
             ON CONFLICT DO NOTHING",
        )
        .bind(request.id.as_str())
        .bind(to_json(request))
        .bind(idempotency_key)
        .bind(RunState::Queued.as_str())
        .bind(request.claimable_by.as_ref().map(|node| node.as_str()))
        .bind(int(now_ms))
        .bind(request.placement.role.as_str())
        .bind(i64::from(request.placement.priority.get()))
        .bind(request.placement.lane.as_ref().map(Lane::as_str))
        .bind(request.placement.project.as_ref().map(ProjectId::as_str))
        .bind(request.placement.agent.as_ref().map(AgentName::as_str))
        .bind(request.placement.place.as_ref().map(PlaceId::as_str))
        .bind(request.policy.mode.to_string())
        .bind(int(request.policy.timeout_ms))
        .bind(request.conversation.as_ref().map(|conversation| conversation.agent.as_str()))
        .bind(direct_path(request))
        .bind(request.replay_of.as_ref().map(RunId::as_str))
        .execute(session.connection())
        .await?;
    Ok(if done.rows_affected() > 0 { Inserted::Yes } else { Inserted::No })
}

/// The run that was accepted before under this key, or this id, if it was for the same request.
async fn earlier(
    session: &mut Session,
    request: &RunRequest,
    idempotency_key: Option<&str>,
) -> Result<RunId, Error> {
    let row = session
        .query(
            "SELECT id, request, idempotency_key FROM runs WHERE idempotency_key = $2 OR id = $1 \
             ORDER BY idempotency_key = $2 DESC NULLS LAST LIMIT 1",
        )
        .bind(request.id.as_str())
        .bind(idempotency_key)
        .fetch_optional(session.connection())
        .await?
        // It was forgotten at this very moment: another try will find nobody in the way.
        .ok_or_else(|| Error::Unavailable(sqlx::Error::Io(std::io::ErrorKind::Interrupted.into()).into()))?;
    let first = Earlier {
        request: from_json(row.try_get("id")?, "request", row.try_get("request")?)?,
        key: row.try_get("idempotency_key")?,
    };
    first.answers(request, idempotency_key)
}
