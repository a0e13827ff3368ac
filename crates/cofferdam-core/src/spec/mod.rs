//! A spec: a piece of work that is done in phases, each checked by a gate before the next starts.

mod documents;
mod example;
mod gate;
mod graph;
mod input;
mod judge;
mod output;
mod phase;
mod plan;
mod prompt;
mod record;
mod reference;
mod setup;
mod shape;
mod status;
mod validate;

pub use documents::{Component, Requirement, Task, Ticket, components, export, requirements, tasks, tickets};
pub use example::example;
pub use gate::{Gate, gate};
pub use graph::{TaskOrderError, task_order};
pub use input::{
    DecideSpecInput, ExecuteSpecInput, LaunchSpecInput, PhaseInput, SpecInput, SpecListInput, UpdateSpecInput,
};
pub use judge::judge_output;
pub use phase::{GATE_TO_PASS, MOST_TRIES, PHASES_VERSION, Phase};
pub use plan::SpecPlan;
pub use prompt::{PromptFacts, TemplateError, prompt};
pub use record::{PhaseDecision, PhaseRecord, PhaseState, Spec, SpecRun};
pub use reference::reference;
pub use setup::{PhaseOutput, PhasePlan, PhaseStarted, SpecProgress, SpecSetup};
pub use shape::{MOST_PHASE_BYTES, check_shape, schema};
pub use status::SpecStatus;
pub use validate::{
    Execution, check_approval, check_execution, check_rejection, check_spec, check_spec_update,
    next_spec_request, of_execution, phase_of, spec_request,
};

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
