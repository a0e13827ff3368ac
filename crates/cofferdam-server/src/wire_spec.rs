//! Specs, from what is on record to what goes over the wire.

use std::collections::BTreeSet;

use cofferdam_api::{
    ExecutionStatus, PhaseData, PhaseDecisionResponse, PhaseResponse, SpecDesign, SpecRequirements,
    SpecResponse, SpecTasks, SpecVersionResponse,
};
use cofferdam_core::{
    Phase, PhaseRecord, Spec, SpecStatus, spec_components, spec_requirements, spec_tasks, spec_tickets,
};
use cofferdam_store::{RunRecord, SpecVersion};
use serde_json::Value;

use crate::handlers::message_of;
use crate::wire;

pub(crate) fn spec(spec: Spec) -> SpecResponse {
    let last = spec.last_run.clone();
    SpecResponse {
        status: spec.status(),
        current_phase: current_phase(&spec),
        awaits_approval: spec.awaits_approval(),
        phases: phases(&spec),
        id: spec.id,
        owner: spec.owner.to_string(),
        project_id: spec.project,
        title: spec.title,
        description: spec.description,
        plan: spec.plan.phases,
        approvals: spec.plan.approvals.into_iter().collect(),
        phases_version: spec.phases_version,
        run_state: last.as_ref().map(|last| last.state),
        run_id: last.map(|last| last.run),
        version: spec.version,
        revision: spec.revision,
        archived: spec.is_archived,
        created_at_ms: spec.created_at_ms,
        updated_at_ms: spec.updated_at_ms,
    }
}

/// The phase that is worked on, or is next, or waits for approval.
pub(crate) fn current_phase(spec: &Spec) -> Option<Phase> {
    spec.awaits_approval().or_else(|| spec.next_phase())
}

pub(crate) fn phase_data(spec: Spec) -> PhaseData {
    PhaseData {
        current_phase: current_phase(&spec),
        phase_attempts: spec.phases.iter().map(|(phase, record)| (*phase, record.tries)).collect(),
        phases: phases(&spec),
        phase_data: spec
            .phases
            .into_iter()
            .filter_map(|(phase, record)| Some((phase, record.output?)))
            .collect(),
        spec_id: spec.id,
    }
}

pub(crate) fn execution_status(spec: &Spec, last_run: Option<RunRecord>) -> ExecutionStatus {
    let passed = spec.plan.phases.iter().filter(|phase| spec.has_passed(**phase)).count();
    let progress = (passed * 100).checked_div(spec.plan.phases.len()).unwrap_or_default();
    ExecutionStatus {
        spec_id: spec.id.clone(),
        status: spec.status(),
        current_phase: current_phase(spec),
        awaits_approval: spec.awaits_approval(),
        progress: u32::try_from(progress).unwrap_or_default(),
        run_id: spec.last_run.as_ref().map(|last| last.run.clone()),
        run_state: spec.last_run.as_ref().map(|last| last.state),
        sandbox_id: last_run.as_ref().map(|run| wire::sandbox(&run.request.id, run.attempts.max(1))),
        last_error: last_error(spec, last_run.as_ref()),
        phases: phases(spec),
    }
}

pub(crate) fn version(version: SpecVersion) -> SpecVersionResponse {
    let SpecVersion { number, title, description, phase, output, actor, at_ms } = version;
    SpecVersionResponse { number, title, description, phase, output, actor, at_ms }
}

pub(crate) fn requirements(spec: &Spec) -> SpecRequirements {
    let requirements = output(spec, Phase::Requirements).map(spec_requirements).unwrap_or_default();
    SpecRequirements { spec_id: spec.id.clone(), passed: spec.has_passed(Phase::Requirements), requirements }
}

pub(crate) fn design(spec: &Spec) -> SpecDesign {
    let output = output(spec, Phase::Design);
    SpecDesign {
        spec_id: spec.id.clone(),
        passed: spec.has_passed(Phase::Design),
        components: output.map(spec_components).unwrap_or_default(),
        output: output.cloned(),
    }
}

pub(crate) fn tasks(spec: &Spec) -> SpecTasks {
    let output = output(spec, Phase::Tasks);
    SpecTasks {
        spec_id: spec.id.clone(),
        passed: spec.has_passed(Phase::Tasks),
        tickets: output.map(spec_tickets).unwrap_or_default(),
        tasks: output.map(spec_tasks).unwrap_or_default(),
    }
}

fn output(spec: &Spec, phase: Phase) -> Option<&Value> {
    spec.phase(phase)?.output.as_ref()
}

/// Why it failed: what its phase lost points for, or else what became of its run.
fn last_error(spec: &Spec, last_run: Option<&RunRecord>) -> Option<String> {
    if spec.status() != SpecStatus::Failed {
        return None;
    }
    let phase = spec.next_phase()?;
    let reasons = spec.phase(phase).map(|record| record.reasons.join("; ")).filter(|text| !text.is_empty());
    let of_run = || message_of(last_run?.outcome.as_ref()?);
    Some(format!("{phase}: {}", reasons.or_else(of_run)?))
}

/// How each phase of the plan stands, and each other one that was tried.
fn phases(spec: &Spec) -> Vec<PhaseResponse> {
    let all: BTreeSet<Phase> = spec.plan.phases.iter().chain(spec.phases.keys()).copied().collect();
    all.into_iter().map(|named| phase(named, spec.phase(named))).collect()
}

fn phase(phase: Phase, record: Option<&PhaseRecord>) -> PhaseResponse {
    let of = record.cloned().unwrap_or_default();
    let decision = of.decision.map(|said| PhaseDecisionResponse {
        approved: said.is_approved,
        by: said.by,
        at_ms: said.at_ms,
        reason: said.reason,
    });
    PhaseResponse {
        phase,
        state: of.state.to_string(),
        tries: of.tries,
        score: of.score,
        reasons: of.reasons,
        decision,
        run_id: of.run,
        updated_at_ms: record.map(|record| record.updated_at_ms),
    }
}
