//! A person writes what a phase is to have brought.

use cofferdam_core::{
    Action, Actor, Gate, InputError, Phase, PhaseInput, Spec, SpecId, check_shape, gate, phase_of,
};
use cofferdam_store::{SpecEdit, WrittenOutput};
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenPhase {
    /// The spec, as it is now.
    pub spec: Spec,
    /// The phase.
    pub phase: Phase,
    /// What its gate says.
    pub gate: Gate,
}

impl Operations {
    /// Writes an output of a phase in place of the agent's. The same gate judges it, and the phases after it are open again.
    ///
    /// # Errors
    /// [`Error`]; [`Error::SpecBusy`] while a run works on it.
    pub async fn write_spec_phase(
        &self,
        actor: &Actor,
        id: &SpecId,
        phase: &str,
        input: &PhaseInput,
    ) -> Result<WrittenPhase, Error> {
        const ACTION: Action = Action::UpdateSpec;
        let spec = self.spec_for(actor, ACTION, id).await?;
        let phase = phase_of("phase", phase)?;
        check_shape(phase, &input.output).map_err(|problems| {
            let hint = "read what the phase has now: GET /api/v1/specs/{id}/phase-data";
            InputError::invalid("output", problems.join("; "), hint)
        })?;
        let gate = gate(phase, &input.output, &spec.before(phase));
        let output = WrittenOutput {
            phase,
            output: input.output.clone(),
            passed: gate.passed,
            score: gate.score,
            reasons: gate.reasons.clone(),
        };
        let edit = SpecEdit { output: Some(output), ..SpecEdit::default() };
        let about = json!({ "changed": ["output"], "phase": phase, "passed": gate.passed });
        let spec = self.store.update_spec(&mandate(actor, ACTION, id.as_str(), about), id, &edit).await?;
        Ok(WrittenPhase { spec, phase, gate })
    }
}
