//! A spec as it is on record.

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_core::{Phase, PhaseRecord, ProjectId, RunId, RunState, SandboxId, Spec, SpecId, SpecStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::schema::{ProjectIdText, RunIdText, SandboxIdText, SpecIdText};

/// A spec.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpecResponse {
    /// Its id.
    #[schema(value_type = SpecIdText)]
    pub id: SpecId,
    /// Whose it is.
    pub owner: String,
    /// The project whose code it is about. It cannot be executed without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ProjectIdText>)]
    pub project_id: Option<ProjectId>,
    /// What it is called.
    pub title: String,
    /// What is wanted.
    pub description: String,
    /// How it stands.
    pub status: SpecStatus,
    /// The phase that is worked on, or is next, or waits for approval; absent once all have passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_phase: Option<Phase>,
    /// The phase that somebody has to approve before it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits_approval: Option<Phase>,
    /// The phases that are done, in their order.
    pub plan: Vec<Phase>,
    /// Those after which it waits for approval.
    pub approvals: Vec<Phase>,
    /// The list of phases that it was made with.
    pub phases_version: u32,
    /// How each phase of the plan stands, and each other one that was tried, in their order.
    pub phases: Vec<PhaseResponse>,
    /// The last run that worked on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunIdText>)]
    pub run_id: Option<RunId>,
    /// Where that run stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub run_state: Option<RunState>,
    /// The number of its last edit, 1 for the first text.
    pub version: u32,
    /// Counts every change.
    pub revision: u64,
    /// Whether it was put away.
    pub archived: bool,
    /// When it was made.
    pub created_at_ms: u64,
    /// When anything of it last changed.
    pub updated_at_ms: u64,
}

/// How a phase stands. What it brought is in `phase-data`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PhaseResponse {
    /// Which phase.
    pub phase: Phase,
    /// Where it stands: `open`, `passed` or `failed`.
    #[schema(pattern = "^(open|passed|failed)$")]
    pub state: String,
    /// How often it was tried since it was last begun anew.
    pub tries: u32,
    /// The score of its last output, from 0 to 1; 0.7 passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What that lost points for, or why somebody rejected it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What a person decided about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<PhaseDecisionResponse>,
    /// The run that worked on it last; absent if a person wrote the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunIdText>)]
    pub run_id: Option<RunId>,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at_ms: Option<u64>,
}

/// What a person decided about a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PhaseDecisionResponse {
    /// Whether it may go on; otherwise the phase is tried again.
    pub approved: bool,
    /// Who, as the audit names them.
    pub by: String,
    /// When.
    pub at_ms: u64,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A page of specs, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpecList {
    /// The specs.
    pub specs: Vec<SpecResponse>,
    /// What to pass as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What the phases of a spec brought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PhaseData {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// The phase that is worked on, or is next, or waits for approval; absent once all have passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_phase: Option<Phase>,
    /// What each phase brought at its last try, by its name, whether that passed or not.
    #[schema(value_type = Object)]
    pub phase_data: BTreeMap<Phase, Value>,
    /// How often each phase was tried.
    #[schema(value_type = Object)]
    pub phase_attempts: BTreeMap<Phase, u32>,
    /// How each phase stands, in their order.
    pub phases: Vec<PhaseResponse>,
}

/// How a spec stands, and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionStatus {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// How it stands.
    pub status: SpecStatus,
    /// The phase that is worked on, or is next, or waits for approval; absent once all have passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_phase: Option<Phase>,
    /// The phase that somebody has to approve before it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits_approval: Option<Phase>,
    /// How much of its plan has passed, in percent.
    #[schema(minimum = 0, maximum = 100)]
    pub progress: u32,
    /// The last run that worked on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunIdText>)]
    pub run_id: Option<RunId>,
    /// Where that run stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub run_state: Option<RunState>,
    /// The sandbox of that run's last attempt, or of its first before any has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SandboxIdText>)]
    pub sandbox_id: Option<SandboxId>,
    /// Why it failed, if it has: what the phase that failed lost points for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// How each phase stands, in their order.
    pub phases: Vec<PhaseResponse>,
}

/// A spec after one of its edits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpecVersionResponse {
    /// 1 for the first text.
    pub number: u32,
    /// What it was called from then on.
    pub title: String,
    /// What was wanted from then on.
    pub description: String,
    /// The phase whose output was written, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// That output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output: Option<Value>,
    /// Who made the edit, as the audit names them.
    pub actor: String,
    /// When.
    pub at_ms: u64,
}

/// A page of versions, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpecVersionList {
    /// The versions.
    pub versions: Vec<SpecVersionResponse>,
    /// What to pass as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u32>,
}

/// Which versions to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SpecVersionsQuery {
    /// Only versions before this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 0, maximum = 4_294_967_295_u32)]
    pub before: Option<u32>,
    /// At most so many; 50 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
}

/// A run that worked, or works, on a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpecRunResponse {
    /// The run.
    #[schema(value_type = RunIdText)]
    pub run_id: RunId,
    /// Where it stands.
    #[schema(value_type = String)]
    pub state: RunState,
}

/// The runs that worked on a spec, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpecRunList {
    /// The runs.
    pub runs: Vec<SpecRunResponse>,
}

impl From<Spec> for SpecResponse {
    fn from(spec: Spec) -> Self {
        let last = spec.last_run.clone();
        Self {
            status: spec.status(),
            current_phase: spec.current_phase(),
            awaits_approval: spec.awaits_approval(),
            phases: PhaseResponse::all_of(&spec),
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
}

impl From<Spec> for PhaseData {
    fn from(spec: Spec) -> Self {
        Self {
            current_phase: spec.current_phase(),
            phase_attempts: spec.phases.iter().map(|(phase, record)| (*phase, record.tries)).collect(),
            phases: PhaseResponse::all_of(&spec),
            phase_data: spec
                .phases
                .into_iter()
                .filter_map(|(phase, record)| Some((phase, record.output?)))
                .collect(),
            spec_id: spec.id,
        }
    }
}

impl PhaseResponse {
    /// How each phase of the plan stands, and each other one that was tried.
    #[must_use]
    pub fn all_of(spec: &Spec) -> Vec<Self> {
        let all: BTreeSet<Phase> = spec.plan.phases.iter().chain(spec.phases.keys()).copied().collect();
        all.into_iter().map(|named| Self::of(named, spec.phase(named))).collect()
    }

    fn of(phase: Phase, record: Option<&PhaseRecord>) -> Self {
        let of = record.cloned().unwrap_or_default();
        let decision = of.decision.map(|said| PhaseDecisionResponse {
            approved: said.is_approved,
            by: said.by,
            at_ms: said.at_ms,
            reason: said.reason,
        });
        Self {
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
}
