//! Starts a run of a spec. There is at most one that has not ended.

use cofferdam_core::{EventType, NewEvent, RunId, RunRequest, Spec, SpecId};
use cofferdam_mandate::Mandate;
use serde_json::json;

use super::{bump, locked, open_phases};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::session::{Session, values};
use crate::spec::{Executed, SpecExecution};
use crate::store::enqueue::{Inserted, insert};
use crate::store::{Store, audit};
use crate::stored::to_json;

impl Store {
    /// Starts a run of a spec for the spec's owner, if none works on it: of many who ask at once, one starts it. Phases that
    /// have not passed have all their tries again. The same request again, by whoever did not hear the answer, changes
    /// nothing.
    ///
    /// # Errors
    /// [`Error::NoSuchSpec`], [`Error::RunExists`] if the id belongs to another run, and [`Error::Text`] for a request that
    /// is not about this spec.
    pub async fn execute_spec(
        &self,
        mandate: &Mandate,
        id: &SpecId,
        execution: &SpecExecution,
    ) -> Result<Executed, Error> {
        require_about(id, &execution.request)?;
        let (mandate, id, execution) = (mandate.clone(), id.clone(), execution.clone());
        let executed = self
            .write(async move |session| {
                let spec = locked(session, &id).await?;
                let SpecExecution { seen, plan, restart_from, request } = &execution;
                if was_started(session, &id, &request.id).await? {
                    return Ok(Executed::Started(request.id.clone()));
                }
                if let Some(live) = spec.live_run() {
                    return Ok(Executed::AlreadyRunning(live.run.clone()));
                }
                if spec.revision != *seen {
                    return Ok(Executed::Changed);
                }
                let sql = "UPDATE specs SET plan = ?2 WHERE id = ?1";
                session.execute(sql, values![&id, to_json(plan)]).await?;
                if let Some(first) = *restart_from {
                    open_phases(session, &id, |phase| phase >= first, mandate.at_ms()).await?;
                }
                start_run(session, &mandate, &spec, request).await?;
                Ok(Executed::Started(request.id.clone()))
            })
            .await?;
        match executed {
            Executed::Started(_) => failpoint("store.execute_spec"),
            Executed::AlreadyRunning(_) | Executed::Changed => {}
        }
        Ok(executed)
    }
}

/// Refuses a run that would work on something else.
pub(super) fn require_about(id: &SpecId, request: &RunRequest) -> Result<(), Error> {
    match request.work.spec() {
        Some(setup) if setup.id == *id => Ok(()),
        Some(_) | None => Err(Error::Text { what: "request", why: "is not about this spec" }),
    }
}

/// Whether this run was started for the spec before.
pub(super) async fn was_started(session: &mut Session<'_>, id: &SpecId, run: &RunId) -> Result<bool, Error> {
    let sql = "SELECT spec FROM runs WHERE id = ?1";
    match session.optional(sql, values![run], |row| row.first::<Option<String>>()).await? {
        None => Ok(false),
        Some(Some(of)) if of == id.as_str() => Ok(true),
        Some(_) => Err(Error::RunExists { run: run.clone() }),
    }
}

/// Queues a run of a spec that is locked and has no live one, counts the change and writes it down.
pub(super) async fn start_run(
    session: &mut Session<'_>,
    mandate: &Mandate,
    spec: &Spec,
    request: &RunRequest,
) -> Result<(), Error> {
    let sql = "UPDATE spec_phases SET state = 'open', tries = 0, updated_at = ?2 \
               WHERE spec = ?1 AND state <> 'passed' AND (state <> 'open' OR tries > 0)";
    session.execute(sql, values![&spec.id, mandate.at_ms()]).await?;
    // Somebody else may act for the owner, who still has to see what works on the spec.
    if insert(session, &spec.owner, mandate.at_ms(), request, None).await? == Inserted::No {
        return Err(Error::RunExists { run: request.id.clone() });
    }
    bump(session, &spec.id, mandate.at_ms()).await?;
    let queued = NewEvent::new(mandate.at_ms(), EventType::RunQueued, json!({}));
    audit::record_with_event(session, mandate, &request.id, &queued).await
}
