//! A spec: a piece of work that is done in phases, each checked by a gate before the next starts.

mod documents;
mod example;
mod gate;
mod graph;
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

pub use documents::{Component, Requirement, Task, Ticket, components, export, requirements, tasks, tickets};
pub use example::example;
pub use gate::{Gate, gate};
pub use graph::{TaskOrderError, task_order};
pub use judge::judge_output;
pub use phase::{GATE_TO_PASS, MOST_TRIES, PHASES_VERSION, Phase};
pub use plan::SpecPlan;
pub use prompt::{PromptFacts, TemplateError, prompt};
pub use record::{PhaseDecision, PhaseRecord, PhaseState, Spec, SpecRun};
pub use reference::reference;
pub use setup::{PhaseOutput, PhasePlan, PhaseStarted, SpecProgress, SpecSetup};
pub use shape::{MOST_PHASE_BYTES, check_shape, schema};
pub use status::SpecStatus;

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
