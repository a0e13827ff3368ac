//! Specs: what is wanted of a project, done in phases.

mod answers;
mod events;
mod record;
mod rows;

pub use answers::{
    CancelSpecResponse, DecideSpecResponse, ExecuteSpecResponse, ExecuteSpecStatus, LaunchSpecResponse,
    LaunchSpecStatus, WritePhaseResponse,
};
pub use events::{SpecEnd, SpecEventResponse, SpecEventsPage, SpecEventsQuery};
pub use record::{
    ExecutionStatus, PhaseData, PhaseDecisionResponse, PhaseResponse, SpecList, SpecResponse, SpecRunList,
    SpecRunResponse, SpecVersionList, SpecVersionResponse, SpecVersionsQuery,
};
pub use rows::{SpecDesign, SpecRequirements, SpecTasks};
