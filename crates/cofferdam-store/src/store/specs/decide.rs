//! Approves and rejects what a phase brought. Nothing waits meanwhile: the run that brought it has ended.

use cofferdam_core::{Phase, PhaseDecision, RunRequest, Spec, SpecId};
use cofferdam_mandate::Mandate;

use super::execute::{require_about, start_run, was_started};
use super::{bump, locked, open_phases};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::session::{Session, values};
use crate::spec::Decided;
use crate::store::{Store, audit};
use crate::stored::to_json;

impl Store {
    /// Approves what the phase brought that the spec waits with, and starts the next run, if there is one. The same again,
    /// by whoever did not hear the answer, changes nothing.
    ///
    /// # Errors
    /// As [`Self::execute_spec`].
    pub async fn approve_phase(
        &self,
        mandate: &Mandate,
        id: &SpecId,
        phase: Phase,
        seen: u64,
        next: Option<&RunRequest>,
    ) -> Result<Decided, Error> {
        if let Some(next) = next {
            require_about(id, next)?;
        }
        let (mandate, id, next) = (mandate.clone(), id.clone(), next.cloned());
        let decided = self
            .write(async move |session| {
                let spec = locked(session, &id).await?;
                let decision = decision(&mandate, true, None);
                if was_decided(session, &spec, phase, &decision, next.as_ref()).await? {
                    return Ok(Decided::Done(next.as_ref().map(|next| next.id.clone())));
                }
                if let Some(refused) = refused(&spec, phase, seen) {
                    return Ok(refused);
                }
                let sql =
                    "UPDATE spec_phases SET decision = ?3, updated_at = ?4 WHERE spec = ?1 AND phase = ?2";
                let values = values![&id, phase.as_str(), to_json(&decision), mandate.at_ms()];
                session.execute(sql, values).await?;
                match &next {
                    Some(next) => start_run(session, &mandate, &spec, next).await?,
                    None => {
                        bump(session, &id, mandate.at_ms()).await?;
                        audit::record(session, &mandate).await?;
                    }
                }
                Ok(Decided::Done(next.as_ref().map(|next| next.id.clone())))
            })
            .await?;
        match decided {
            Decided::Done(_) => failpoint("store.approve_phase"),
            Decided::NotWaiting | Decided::Changed => {}
        }
        Ok(decided)
    }

    /// Rejects what the phase brought that the spec waits with: it is tried again, with the reason, in a run that starts
    /// now. The same again, by whoever did not hear the answer, changes nothing.
    ///
    /// # Errors
    /// As [`Self::execute_spec`].
    pub async fn reject_phase(
        &self,
        mandate: &Mandate,
        id: &SpecId,
        phase: Phase,
        reason: &str,
        seen: u64,
        next: &RunRequest,
    ) -> Result<Decided, Error> {
        require_about(id, next)?;
        let (mandate, id, reason, next) = (mandate.clone(), id.clone(), reason.to_owned(), next.clone());
        let decided = self
            .write(async move |session| {
                let spec = locked(session, &id).await?;
                let decision = decision(&mandate, false, Some(reason.clone()));
                if was_decided(session, &spec, phase, &decision, Some(&next)).await? {
                    return Ok(Decided::Done(Some(next.id.clone())));
                }
                if let Some(refused) = refused(&spec, phase, seen) {
                    return Ok(refused);
                }
                open_phases(session, &id, |other| other >= phase, mandate.at_ms()).await?;
                let sql = "UPDATE spec_phases SET decision = ?3, reasons = ?4 WHERE spec = ?1 AND phase = ?2";
                let reasons = to_json(&[&reason]);
                session.execute(sql, values![&id, phase.as_str(), to_json(&decision), reasons]).await?;
                start_run(session, &mandate, &spec, &next).await?;
                Ok(Decided::Done(Some(next.id.clone())))
            })
            .await?;
        match decided {
            Decided::Done(_) => failpoint("store.reject_phase"),
            Decided::NotWaiting | Decided::Changed => {}
        }
        Ok(decided)
    }
}

fn decision(mandate: &Mandate, is_approved: bool, reason: Option<String>) -> PhaseDecision {
    PhaseDecision { is_approved, by: mandate.actor().to_owned(), at_ms: mandate.at_ms(), reason }
}

/// Whether just this was decided before: the run that was to follow is there, or, without one, the decision itself.
async fn was_decided(
    session: &mut Session<'_>,
    spec: &Spec,
    phase: Phase,
    decision: &PhaseDecision,
    next: Option<&RunRequest>,
) -> Result<bool, Error> {
    match next {
        Some(next) => was_started(session, &spec.id, &next.id).await,
        None => Ok(spec.phase(phase).and_then(|record| record.decision.as_ref()) == Some(decision)),
    }
}

/// Why nothing can be decided about the phase, if so. A run that is still about to end has to have ended.
fn refused(spec: &Spec, phase: Phase, seen: u64) -> Option<Decided> {
    match () {
        () if spec.live_run().is_some() => Some(Decided::NotWaiting),
        () if spec.revision != seen => Some(Decided::Changed),
        () if spec.awaits_approval() != Some(phase) => Some(Decided::NotWaiting),
        () => None,
    }
}
