//! What a person says of a phase that waits for it.

use cofferdam_core::{
    Action, Actor, ApprovalsBy, ChosenPolicy, DecideSpecInput, InputError, Phase, PhaseDecision, Refusal,
    RunId, RunRequest, Scope, Spec, SpecId, check_approval, check_rejection, next_spec_request, phase_of,
};
use cofferdam_store::Decided;
use serde_json::json;

use super::execute::MOST_LOOKS;
use crate::Operations;
use crate::authorise::mandate;
use crate::clock::now_ms;
use crate::error::Error;
use crate::random::random_bits;

/// What a person says of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may go on.
    Approve,
    /// The phase is tried again.
    Reject,
}

/// A spec after a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedSpec {
    /// The spec, as it is now.
    pub spec: Spec,
    /// The phase that was decided about.
    pub phase: Phase,
    /// The run that goes on with it; `None` if nothing is left to do.
    pub run: Option<RunId>,
}

impl Operations {
    /// Decides about the phase that waits. The next run has the policy of the one before.
    ///
    /// # Errors
    /// [`Error`]; [`Error::SpecNotWaiting`] if no phase waits.
    pub async fn decide_spec(
        &self,
        actor: &Actor,
        id: &SpecId,
        decision: Decision,
        input: &DecideSpecInput,
    ) -> Result<DecidedSpec, Error> {
        let now = self.now().await?;
        for _ in 0..MOST_LOOKS {
            let spec = now.spec_for(actor, Action::DecideSpec, id).await?;
            now.may_decide(actor, &spec).await?;
            if let Some(decided) = now.try_decision(actor, &spec, decision, input).await? {
                return Ok(decided);
            }
        }
        Err(Error::SpecChanged(id.clone()))
    }

    /// Whether an actor may decide about phases, which the settings may leave to the scope `system` alone.
    pub(super) async fn may_decide(&self, actor: &Actor, spec: &Spec) -> Result<(), Error> {
        const ACTION: Action = Action::DecideSpec;
        let judged = match self.settings.settings.specs.approvals_by {
            ApprovalsBy::System if !actor.is_unbounded() => {
                Err(Refusal::MissingScope { action: ACTION, scope: Scope::System })
            }
            ApprovalsBy::System | ApprovalsBy::Owner => Ok(()),
        };
        self.unless_refused(actor, ACTION, spec.id.as_str(), judged).await
    }

    /// `None` if the spec was changed after it was read.
    async fn try_decision(
        &self,
        actor: &Actor,
        spec: &Spec,
        decision: Decision,
        input: &DecideSpecInput,
    ) -> Result<Option<DecidedSpec>, Error> {
        let phase = waiting(spec, input)?;
        let decided = match decision {
            Decision::Approve => {
                check_approval(input.reason.as_deref())?;
                let next = self.next_run(actor, spec, &approved(spec, phase, actor)).await?;
                let about = json!({ "phase": phase, "decision": "approved", "reason": input.reason,
                    "run": next.as_ref().map(|next| &next.id) });
                let mandate = mandate(actor, Action::DecideSpec, spec.id.as_str(), about);
                self.store.approve_phase(&mandate, &spec.id, phase, spec.revision, next.as_ref()).await?
            }
            Decision::Reject => {
                let reason = check_rejection(input.reason.as_deref())?;
                let rejected = spec.planned(spec.plan.clone(), Some(phase));
                let next = self.next_run(actor, spec, &rejected).await?.ok_or_else(not_kept)?;
                let about =
                    json!({ "phase": phase, "decision": "rejected", "reason": reason, "run": next.id });
                let mandate = mandate(actor, Action::DecideSpec, spec.id.as_str(), about);
                self.store.reject_phase(&mandate, &spec.id, phase, reason, spec.revision, &next).await?
            }
        };
        let run = match decided {
            Decided::Done(run) => run,
            Decided::NotWaiting => return Err(Error::SpecNotWaiting(spec.id.clone())),
            Decided::Changed => return Ok(None),
        };
        self.store.wake();
        Ok(Some(DecidedSpec { spec: self.spec_on_record(&spec.id).await?, phase, run }))
    }

    /// The run that follows once the spec is as it is planned; `None` if nothing is left to do. It is judged as a new one, by
    /// today's rules.
    async fn next_run(
        &self,
        actor: &Actor,
        spec: &Spec,
        planned: &Spec,
    ) -> Result<Option<RunRequest>, Error> {
        let phases = planned.stretch();
        if phases.is_empty() {
            return Ok(None);
        }
        let Some(earlier) = self.store.spec_request(&spec.id).await? else { return Err(not_kept()) };
        if earlier.placement.project != spec.project {
            return Err(not_kept());
        }
        let earlier = RunRequest {
            id: RunId::new(now_ms(), random_bits()),
            replay_of: None,
            claimable_by: None,
            ..earlier
        };
        let next =
            next_spec_request(earlier, planned, &phases, &self.settings.settings).ok_or_else(not_kept)?;
        Ok(Some(self.judged_for_spec(actor, next, ChosenPolicy::Unknown).await?))
    }
}

/// The phase that waits, if it is the one that is meant.
fn waiting(spec: &Spec, input: &DecideSpecInput) -> Result<Phase, Error> {
    if let Some(live) = spec.live_run() {
        return Err(Error::SpecBusy { spec: spec.id.clone(), run: live.run.clone() });
    }
    if spec.is_archived {
        return Err(Error::SpecArchived(spec.id.clone()));
    }
    let meant = input.phase.as_deref().map(|text| phase_of("phase", text)).transpose()?;
    match (spec.awaits_approval(), meant) {
        (Some(phase), None) => Ok(phase),
        (Some(phase), Some(meant)) if phase == meant => Ok(phase),
        _ => Err(Error::SpecNotWaiting(spec.id.clone())),
    }
}

/// The spec as it is once the phase is approved.
fn approved(spec: &Spec, phase: Phase, actor: &Actor) -> Spec {
    let mut spec = spec.clone();
    if let Some(record) = spec.phases.get_mut(&phase) {
        let decision = PhaseDecision { is_approved: true, by: actor.name(), at_ms: now_ms(), reason: None };
        record.decision = Some(decision);
    }
    spec
}

/// What the last run was like is not on record any more, or it was on another project.
fn not_kept() -> Error {
    InputError::invalid(
        "phase",
        "it cannot go on as before: its project was changed, or its last run is not kept any more",
        "execute it again: POST /api/v1/specs/{id}/execute with {\"resume_from_phase\": \"PHASE\"}",
    )
    .into()
}
