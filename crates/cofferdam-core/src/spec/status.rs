//! How a spec stands. It is never stored: it follows from its phases and its last run, so that it cannot say otherwise.

use serde::{Deserialize, Serialize};

use crate::run::RunState;
use crate::spec::{Phase, PhaseRecord, Spec};

/// How a spec stands.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SpecStatus {
    /// Nobody has executed it, or it was edited since.
    Draft,
    /// Its run waits for a node.
    Queued,
    /// Its run works.
    Executing,
    /// A phase passed, and somebody has to approve it.
    AwaitingApproval,
    /// Every phase of its plan passed.
    Completed,
    /// Its last run ended without a phase that had to pass.
    Failed,
    /// Somebody ended its last run.
    Cancelled,
}

impl SpecStatus {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Spec {
    /// How it stands.
    #[must_use]
    pub fn status(&self) -> SpecStatus {
        match self.last_run.as_ref().map(|last| last.state) {
            Some(RunState::Queued) => SpecStatus::Queued,
            Some(RunState::Running) => SpecStatus::Executing,
            _ if self.awaits_approval().is_some() => SpecStatus::AwaitingApproval,
            None if self.phases.is_empty() => SpecStatus::Draft,
            _ if self.next_phase().is_none() => SpecStatus::Completed,
            None => SpecStatus::Draft,
            Some(RunState::Cancelled) => SpecStatus::Cancelled,
            Some(RunState::Succeeded | RunState::Failed | RunState::TimedOut) => SpecStatus::Failed,
        }
    }

    /// The phase that somebody has to approve before it goes on.
    #[must_use]
    pub fn awaits_approval(&self) -> Option<Phase> {
        let waits = |phase: &Phase| self.plan.approvals.contains(phase) && self.has_passed(*phase);
        let is_approved =
            |record: &PhaseRecord| record.decision.as_ref().is_some_and(|said| said.is_approved);
        let open = |phase: &Phase| !self.phase(*phase).is_some_and(is_approved);
        self.plan.phases.iter().copied().find(|phase| waits(phase) && open(phase))
    }

    /// The first phase of the plan that has not passed.
    #[must_use]
    pub fn next_phase(&self) -> Option<Phase> {
        self.plan.phases.iter().copied().find(|phase| !self.has_passed(*phase))
    }

    /// The phase that is worked on, or is next, or waits for approval; `None` once all have passed.
    #[must_use]
    pub fn current_phase(&self) -> Option<Phase> {
        self.awaits_approval().or_else(|| self.next_phase())
    }

    /// The phases that one run does next, in one sandbox: up to the one that a person has to approve. Empty if there is nothing
    /// to do, or somebody has to approve first.
    #[must_use]
    pub fn stretch(&self) -> Vec<Phase> {
        if self.awaits_approval().is_some() {
            return Vec::new();
        }
        let mut stretch = Vec::new();
        for phase in self.plan.phases.iter().copied().filter(|phase| !self.has_passed(*phase)) {
            // Each task of `implement` is a run of its own.
            if phase == Phase::Implement && !stretch.is_empty() {
                break;
            }
            stretch.push(phase);
            if self.plan.approvals.contains(&phase) {
                break;
            }
        }
        stretch
    }
}
