//! What is told to the store about specs, and what it answers.

use cofferdam_core::{
    NewEvent, OwnerName, Phase, PhaseState, ProjectId, RunId, RunRequest, SpecId, SpecPlan,
};
use serde_json::Value;

/// A spec that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSpec {
    /// Its name.
    pub id: SpecId,
    /// The project whose code it is about; it may be named later.
    pub project: Option<ProjectId>,
    /// What it is called.
    pub title: String,
    /// What is wanted.
    pub description: String,
}

/// Which specs to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecList {
    /// Of this owner; of all without one.
    pub of: Option<OwnerName>,
    /// Of this project.
    pub project: Option<ProjectId>,
    /// Those that were put away, in place of those that were not.
    pub archived: bool,
    /// Older than this one: when the last of the page before was made, and which it is.
    pub before: Option<(u64, SpecId)>,
    /// At most so many.
    pub limit: u32,
}

/// What is changed of a spec; the rest stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpecEdit {
    /// What it is called.
    pub title: Option<String>,
    /// What is wanted.
    pub description: Option<String>,
    /// The project whose code it is about.
    pub project: Option<ProjectId>,
    /// Whether it is put away.
    pub archived: Option<bool>,
    /// What a phase is to have brought.
    pub output: Option<WrittenOutput>,
}

/// The output of a phase, as a person wrote it, and what the gate says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenOutput {
    /// Which phase.
    pub phase: Phase,
    /// The output.
    pub output: Value,
    /// Whether the gate lets it through.
    pub passed: bool,
    /// Its score.
    pub score: f64,
    /// What it lost points for.
    pub reasons: Vec<String>,
}

/// A spec after one of its edits.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecVersion {
    /// 1 for the first text.
    pub number: u32,
    /// What it was called from then on.
    pub title: String,
    /// What was wanted from then on.
    pub description: String,
    /// The phase whose output was written, if one was.
    pub phase: Option<Phase>,
    /// That output.
    pub output: Option<Value>,
    /// Who made the edit, as the audit names them.
    pub actor: String,
    /// When.
    pub at_ms: u64,
}

/// A run of a spec that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecExecution {
    /// The revision of the spec that the request was made from.
    pub seen: u64,
    /// What is to be done of the spec from now on.
    pub plan: SpecPlan,
    /// The phase that is done again, with all after it.
    pub restart_from: Option<Phase>,
    /// The run.
    pub request: RunRequest,
}

/// What became of a request to execute a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executed {
    /// This run was started for it.
    Started(RunId),
    /// This run works on the spec already, and nothing was changed.
    AlreadyRunning(RunId),
    /// The spec was changed since it was read: read it again. Nothing was changed.
    Changed,
}

/// What became of a decision about a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// It is recorded, and this run was started, if one was to be.
    Done(Option<RunId>),
    /// The spec does not wait for a decision about this phase. Nothing was changed.
    NotWaiting,
    /// The spec was changed since it was read: read it again. Nothing was changed.
    Changed,
}

/// What a try of a phase brought, as the holder of the run's lease says it.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseNews {
    /// Which phase.
    pub phase: Phase,
    /// How many tries are spent, with this one.
    pub tries: u32,
    /// Where it stands now.
    pub state: PhaseState,
    /// What the try brought.
    pub output: Option<Value>,
    /// The score of that.
    pub score: Option<f64>,
    /// What that lost points for.
    pub reasons: Vec<String>,
    /// The events that tell of it.
    pub events: Vec<NewEvent>,
}
