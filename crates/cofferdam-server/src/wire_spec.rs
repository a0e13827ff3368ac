//! Specs, from what is on record to what goes over the wire.

use cofferdam_api::{
    ExecutionStatus, PhaseResponse, SpecDesign, SpecRequirements, SpecTasks, SpecVersionResponse,
};
use cofferdam_core::{Phase, Spec, SpecStatus, spec_components, spec_requirements, spec_tasks, spec_tickets};
use cofferdam_store::{RunRecord, SpecVersion};
use serde_json::Value;

use crate::handlers::message_of;
use crate::wire;

pub(crate) fn execution_status(spec: &Spec, last_run: Option<RunRecord>) -> ExecutionStatus {
    let passed = spec.plan.phases.iter().filter(|phase| spec.has_passed(**phase)).count();
    let progress = (passed * 100).checked_div(spec.plan.phases.len()).unwrap_or_default();
    ExecutionStatus {
        spec_id: spec.id.clone(),
        status: spec.status(),
        current_phase: spec.current_phase(),
        awaits_approval: spec.awaits_approval(),
        progress: u32::try_from(progress).unwrap_or_default(),
        run_id: spec.last_run.as_ref().map(|last| last.run.clone()),
        run_state: spec.last_run.as_ref().map(|last| last.state),
        sandbox_id: last_run.as_ref().map(|run| wire::sandbox(&run.request.id, run.attempts.max(1))),
        last_error: last_error(spec, last_run.as_ref()),
        phases: PhaseResponse::all_of(spec),
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
