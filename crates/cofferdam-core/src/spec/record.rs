//! A spec as it is on record: what is wanted, what each phase brought, and who decided what.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::OwnerName;
use crate::ids::{ProjectId, RunId, SpecId};
use crate::run::RunState;
use crate::spec::{Phase, SpecPlan};

/// A piece of work that is done in phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name.
    pub id: SpecId,
    /// Whose it is.
    pub owner: OwnerName,
    /// The project whose code it is about; it cannot be executed without one.
    pub project: Option<ProjectId>,
    /// What it is called.
    pub title: String,
    /// What is wanted.
    pub description: String,
    /// The list of phases that it was made with.
    pub phases_version: u32,
    /// What of it is to be done: as it was last executed.
    pub plan: SpecPlan,
    /// What the phases brought. A phase that nobody tried yet is not in it.
    pub phases: BTreeMap<Phase, PhaseRecord>,
    /// The last run that worked on it.
    pub last_run: Option<SpecRun>,
    /// The number of its last edit, 1 for the first text.
    pub version: u32,
    /// Counts every change: whoever decides by what they read says which one that was.
    pub revision: u64,
    /// Whether it was put away.
    pub is_archived: bool,
    /// When it was made.
    pub created_at_ms: u64,
    /// When anything of it last changed.
    pub updated_at_ms: u64,
}

/// A run that worked, or works, on a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecRun {
    /// Which run.
    pub run: RunId,
    /// Where it stands.
    pub state: RunState,
}

/// What one phase of a spec brought.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// Whether its gate let it through.
    pub state: PhaseState,
    /// How often it was tried since it was last begun anew.
    pub tries: u32,
    /// What it brought, at its last try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The score of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What that lost points for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What a person said of it, if anybody did since it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<PhaseDecision>,
    /// The run that worked on it last; `None` if a person wrote the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// When it last changed.
    pub updated_at_ms: u64,
}

/// Where a phase stands.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PhaseState {
    /// Nothing of it counts yet.
    #[default]
    Open,
    /// Its output passed the gate.
    Passed,
    /// All its tries are spent.
    Failed,
}

/// What a person decided about a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseDecision {
    /// Whether it may go on; otherwise the phase is tried again.
    pub is_approved: bool,
    /// Who, as the audit names them.
    pub by: String,
    /// When.
    pub at_ms: u64,
    /// Why; always there for a rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Spec {
    /// The record of a phase, if it was ever tried or written.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> Option<&PhaseRecord> {
        self.phases.get(&phase)
    }

    /// Whether the phase's output passed its gate.
    #[must_use]
    pub fn has_passed(&self, phase: Phase) -> bool {
        self.phase(phase).is_some_and(|record| record.state == PhaseState::Passed)
    }

    /// The outputs that passed, of the phases before this one: what it works with.
    #[must_use]
    pub fn before(&self, phase: Phase) -> BTreeMap<Phase, Value> {
        let passed = self.phases.range(..phase).filter(|(_, record)| record.state == PhaseState::Passed);
        passed.filter_map(|(phase, record)| Some((*phase, record.output.clone()?))).collect()
    }

    /// The run that is queued or running, if there is one.
    #[must_use]
    pub fn live_run(&self) -> Option<&SpecRun> {
        self.last_run.as_ref().filter(|last| !last.state.is_final())
    }
}
