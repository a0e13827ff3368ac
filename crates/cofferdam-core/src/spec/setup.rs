//! What a run of a spec is told, and what its worker says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ProjectId, SpecId};
use crate::settings::Agent;
use crate::spec::Phase;

/// What a run of a spec does: one stretch of phases, in one sandbox. It is part of the request and never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecSetup {
    /// Which spec.
    pub id: SpecId,
    /// Its project.
    pub project: ProjectId,
    /// Whose CLI works on the phases.
    pub agent: Agent,
    /// The model, as the CLI names it; its own default without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it is called.
    pub title: String,
    /// What is wanted.
    pub description: String,
    /// The list of phases that this is written in.
    pub phases_version: u32,
    /// The phases, in their order; not empty.
    pub phases: Vec<PhasePlan>,
}

/// How one phase is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhasePlan {
    /// Which one.
    pub phase: Phase,
    /// Longest time of all its tries together.
    pub seconds: u32,
    /// Turns that the agent may take in one try, where its CLI can count them.
    pub max_turns: u32,
    /// The project's own template for its prompt, in place of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

/// How far a spec is when an attempt at its run starts: part of the job, since attempts before it may have passed phases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecProgress {
    /// The outputs of the phases that have passed.
    pub outputs: BTreeMap<Phase, Value>,
    /// What the next try of a phase is told: the reasons of the gate, or of whoever rejected it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feedback: BTreeMap<Phase, Vec<String>>,
    /// How many tries of a phase are spent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tries: BTreeMap<Phase, u32>,
}

/// A try of a phase begins: the data of `phase.started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseStarted {
    /// Which phase.
    pub phase: Phase,
    /// 1 for the first try.
    pub number: u32,
}

/// What a try of a phase brought, as the worker says it: the data of `phase.output` on its way out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseOutput {
    /// Which phase.
    pub phase: Phase,
    /// 1 for the first try.
    pub number: u32,
    /// What is in its file; `None` if there is none that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Whether its gate let it through, by the worker's reckoning.
    pub passed: bool,
    /// Its score, by the worker's reckoning.
    pub score: f64,
    /// What it lost points for, by the worker's reckoning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}
