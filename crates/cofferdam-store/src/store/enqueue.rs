//! Accepts a run.

use cofferdam_core::{EventType, NewEvent, OwnerName, RunId, RunRequest, RunState};
use cofferdam_mandate::Mandate;
use serde_json::json;

use super::turns::carry_over;
use super::{Store, audit};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::record::Enqueued;
use crate::repeated::Earlier;
use crate::session::{Line, Session, values};
use crate::stored::{direct_path, require_name, to_json};

impl Store {
    /// Accepts a run for the mandate's owner: writes it as queued, with its first event. A repeated key returns the first
    /// run, and so does the same request with the same id: whoever did not hear the answer asks again. The same key of two
    /// owners is two keys.
    ///
    /// # Errors
    /// [`Error::IdempotencyMismatch`] if the key was used for a request that differs in more than its id,
    /// [`Error::RunExists`] if the id was, or belongs to another owner's run, [`Error::Text`] for a key that cannot be kept,
    /// [`Error::NotFinal`] or [`Error::NotFound`] if there is no conversation that could go on, and [`Error::RunOfSpec`] for a
    /// run of a spec, which is executed as a whole.
    pub async fn enqueue(
        &self,
        mandate: &Mandate,
        request: &RunRequest,
        idempotency_key: Option<&str>,
    ) -> Result<Enqueued, Error> {
        if let Some(key) = idempotency_key {
            require_name("idempotency key", key)?;
        }
        if let Some(setup) = request.work.spec() {
            let run = request.replay_of.clone().unwrap_or_else(|| request.id.clone());
            return Err(Error::RunOfSpec { run, spec: setup.id.clone() });
        }
        let (mandate, request) = (mandate.clone(), request.clone());
        let key = idempotency_key.map(str::to_owned);
        let enqueued = self
            .write(async move |session| {
                let key = key.as_deref();
                // Messages to one agent are accepted one after the other, so that a later one is never seen before an
                // earlier one.
                if let Some(conversation) = &request.conversation {
                    session.wait_in(Line::Conversation(conversation.agent.as_str())).await?;
                }
                if insert(session, mandate.owner(), mandate.at_ms(), &request, key).await? == Inserted::No {
                    let first = earlier(session, mandate.owner(), &request, key).await?;
                    return Ok(Enqueued { run: first, created: false });
                }
                if let Some(from) = request.work.direct().and_then(|setup| setup.resume.as_ref()) {
                    carry_over(session, from, &request.id).await?;
                }
                let queued = NewEvent::new(mandate.at_ms(), EventType::RunQueued, json!({}));
                audit::record_with_event(session, &mandate, &request.id, &queued).await?;
                Ok(Enqueued { run: request.id.clone(), created: true })
            })
            .await?;
        if enqueued.created {
            failpoint("store.enqueue");
        }
        Ok(enqueued)
    }
}

#[derive(PartialEq)]
pub(super) enum Inserted {
    Yes,
    /// There is a run of this id or key, or one of this spec that has not ended.
    No,
}

/// Writes a run as queued. Waits for another transaction that is about to use the same key.
pub(super) async fn insert(
    session: &mut Session<'_>,
    owner: &OwnerName,
    now_ms: u64,
    request: &RunRequest,
    key: Option<&str>,
) -> Result<Inserted, Error> {
    let placement = &request.placement;
    let inserted = session
        .execute(
            "INSERT INTO runs (id, request, idempotency_key, state, claimable_by, not_before_ms, \
             created_at, updated_at, role, priority, lane, project, agent, place, mode, timeout_ms, conversation, \
             direct_path, replay_of, owner, is_direct, spec) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20) \
             ON CONFLICT DO NOTHING",
            values![
                &request.id,
                to_json(request),
                key,
                RunState::Queued,
                request.claimable_by.as_ref(),
                now_ms,
                placement.role.as_str(),
                i64::from(placement.priority.get()),
                placement.lane.as_ref(),
                placement.project.as_ref(),
                placement.agent.as_ref(),
                placement.place.as_ref(),
                request.policy.mode.to_string(),
                request.policy.timeout_ms,
                request.conversation.as_ref().map(|conversation| conversation.agent.as_str()),
                direct_path(request),
                request.replay_of.as_ref(),
                owner,
                request.work.direct().is_some(),
                request.work.spec().map(|setup| &setup.id),
            ],
        )
        .await?;
    Ok(if inserted > 0 { Inserted::Yes } else { Inserted::No })
}

/// The run that was accepted before for this owner under this key, or this id, if it was for the same request.
async fn earlier(
    session: &mut Session<'_>,
    owner: &OwnerName,
    request: &RunRequest,
    key: Option<&str>,
) -> Result<RunId, Error> {
    let found = session
        .optional(
            "SELECT id, request, owner, idempotency_key FROM runs \
             WHERE owner = ?3 AND idempotency_key = ?2 OR id = ?1 \
             ORDER BY owner = ?3 AND idempotency_key = ?2 DESC NULLS LAST LIMIT 1",
            values![&request.id, key, owner],
            |row| {
                let id: String = row.get("id")?;
                Ok(Earlier {
                    request: row.json(&id, "request", "request")?,
                    owner: row.parse(&id, "owner", "owner")?,
                    key: row.get("idempotency_key")?,
                })
            },
        )
        .await?;
    // It was forgotten at this very moment: another try will find nobody in the way.
    let gone = || Error::Unavailable(sqlx::Error::Io(std::io::ErrorKind::Interrupted.into()).into());
    found.ok_or_else(gone)?.answers(request, owner, key)
}
