//! The rules, as data: one row for each action. [`super::may`] and `docs/reference/access.md` are made from them.

use crate::access::{Action, Scope};

/// What an action reaches, which says what its subject has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nothing that belongs to anybody.
    Nothing,
    /// What is the operator's: projects, keys, nodes, processes, the audit.
    Operator,
    /// Runs that the actor sees, or one of them. Specs are judged as runs are.
    VisibleRun,
    /// A run of the actor's own owner, none of which is beyond what the actor may ask for.
    OwnRun,
    /// What does not exist yet, as a request describes it: a run or a project.
    New,
}

/// Whether somebody without a key may do it, where the operator wants none from callers on loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyless {
    May,
    Never,
}

/// What one action needs.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) action: Action,
    /// A key needs one of these; `system` implies each. The first is the one that a refusal names.
    pub(super) scopes: &'static [Scope],
    pub(super) reach: Reach,
    pub(super) keyless: Keyless,
}

const READ: &[Scope] = &[Scope::Read];
const RUN: &[Scope] = &[Scope::Run];
const SYSTEM: &[Scope] = &[Scope::System];
/// A key with `run` alone reads its own runs, and what it has to name in a request.
const READ_OR_RUN: &[Scope] = &[Scope::Read, Scope::Run];

/// One row for each action.
pub(super) const RULES: &[Rule] = &[
    row(Action::CreateRun, RUN, Reach::New, Keyless::May),
    row(Action::RetryRun, RUN, Reach::OwnRun, Keyless::May),
    row(Action::CancelRun, RUN, Reach::OwnRun, Keyless::May),
    row(Action::SendMessage, RUN, Reach::OwnRun, Keyless::May),
    row(Action::AllowHost, SYSTEM, Reach::OwnRun, Keyless::Never),
    row(Action::RemoveRun, RUN, Reach::OwnRun, Keyless::May),
    row(Action::ListRuns, READ_OR_RUN, Reach::VisibleRun, Keyless::May),
    row(Action::ReadRun, READ_OR_RUN, Reach::VisibleRun, Keyless::May),
    row(Action::ReadDeadLetters, READ_OR_RUN, Reach::VisibleRun, Keyless::May),
    row(Action::RemoveDeadLetter, RUN, Reach::OwnRun, Keyless::May),
    row(Action::CreateProject, SYSTEM, Reach::New, Keyless::Never),
    row(Action::ReadProjects, READ_OR_RUN, Reach::Operator, Keyless::May),
    row(Action::RemoveProject, SYSTEM, Reach::Operator, Keyless::Never),
    row(Action::CreateSpec, RUN, Reach::New, Keyless::May),
    row(Action::ListSpecs, READ_OR_RUN, Reach::VisibleRun, Keyless::May),
    row(Action::ReadSpec, READ_OR_RUN, Reach::VisibleRun, Keyless::May),
    row(Action::UpdateSpec, RUN, Reach::OwnRun, Keyless::May),
    row(Action::ExecuteSpec, RUN, Reach::OwnRun, Keyless::May),
    row(Action::DecideSpec, RUN, Reach::OwnRun, Keyless::May),
    row(Action::CreateKey, SYSTEM, Reach::Operator, Keyless::Never),
    row(Action::ListKeys, SYSTEM, Reach::Operator, Keyless::Never),
    row(Action::RevokeKey, SYSTEM, Reach::Operator, Keyless::Never),
    row(Action::ListAgents, READ_OR_RUN, Reach::Nothing, Keyless::May),
    row(Action::ListNodes, READ, Reach::Operator, Keyless::May),
    row(Action::RunDoctor, SYSTEM, Reach::Operator, Keyless::May),
    row(Action::LookAtAgents, SYSTEM, Reach::Operator, Keyless::May),
    row(Action::CheckAuth, SYSTEM, Reach::Operator, Keyless::May),
    row(Action::ReadConfig, SYSTEM, Reach::Operator, Keyless::May),
    row(Action::ChangeConfig, SYSTEM, Reach::Operator, Keyless::May),
    row(Action::ReadProcesses, SYSTEM, Reach::Operator, Keyless::May),
    row(Action::StartProcess, SYSTEM, Reach::Operator, Keyless::May),
    row(Action::StopProcess, SYSTEM, Reach::Operator, Keyless::May),
    row(Action::ReadMetrics, READ, Reach::Nothing, Keyless::May),
    row(Action::ReadAudit, SYSTEM, Reach::Operator, Keyless::May),
    row(Action::ReadSettings, SYSTEM, Reach::Operator, Keyless::May),
    row(Action::ReadTrust, SYSTEM, Reach::Operator, Keyless::May),
];

const fn row(action: Action, scopes: &'static [Scope], reach: Reach, keyless: Keyless) -> Rule {
    Rule { action, scopes, reach, keyless }
}

/// The row of an action.
pub(super) fn rule_of(action: Action) -> &'static Rule {
    RULES.iter().find(|rule| rule.action == action).expect("each action has a row; a test says so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_has_one_row_that_names_a_scope() {
        let actions: Vec<Action> = RULES.iter().map(|rule| rule.action).collect();
        assert_eq!(actions, Action::ALL);
        assert!(RULES.iter().all(|rule| !rule.scopes.is_empty()));
    }
}
