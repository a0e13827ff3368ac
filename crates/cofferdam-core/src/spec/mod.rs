//! A spec: a piece of work that is done in phases, each checked by a gate before the next starts.

mod input;
mod phase;
mod plan;
mod record;
mod setup;
mod status;
mod validate;

pub use input::{
    DecideSpecInput, ExecuteSpecInput, LaunchSpecInput, PhaseInput, SpecInput, SpecListInput, UpdateSpecInput,
};
pub use phase::{GATE_TO_PASS, MOST_TRIES, PHASES_VERSION, Phase};
pub use plan::SpecPlan;
pub use record::{PhaseDecision, PhaseRecord, PhaseState, Spec, SpecRun};
pub use setup::{PhaseOutput, PhasePlan, PhaseStarted, SpecProgress, SpecSetup};
pub use status::SpecStatus;
pub use validate::{
    Execution, check_approval, check_execution, check_rejection, check_spec, check_spec_update,
    next_spec_request, of_execution, phase_of, spec_request,
};

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
