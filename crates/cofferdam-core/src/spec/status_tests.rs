use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::access::OwnerName;
use crate::ids::{ProjectId, RunId, SpecId};
use crate::run::RunState;

fn spec(plan: SpecPlan) -> Spec {
    Spec {
        id: SpecId::new(1, 1),
        owner: OwnerName::system(),
        project: Some(ProjectId::new(1, 1)),
        title: "Dark mode".to_owned(),
        description: "Add it.".to_owned(),
        phases_version: PHASES_VERSION,
        plan,
        phases: BTreeMap::new(),
        last_run: None,
        version: 1,
        revision: 1,
        is_archived: false,
        created_at_ms: 1,
        updated_at_ms: 1,
    }
}

fn pass(spec: &mut Spec, phases: impl IntoIterator<Item = Phase>) {
    for phase in phases {
        let record =
            PhaseRecord { state: PhaseState::Passed, output: Some(json!({})), ..PhaseRecord::default() };
        spec.phases.insert(phase, record);
    }
}

fn ran(spec: &mut Spec, state: RunState) {
    spec.last_run = Some(SpecRun { run: RunId::new(1, 1), state });
}

fn approve(spec: &mut Spec, phase: Phase) {
    let said = PhaseDecision { is_approved: true, by: "local".to_owned(), at_ms: 2, reason: None };
    spec.phases.get_mut(&phase).unwrap().decision = Some(said);
}

#[test]
fn the_status_follows_from_phases_and_run() {
    let mut it = spec(SpecPlan::default());
    assert_eq!(it.status(), SpecStatus::Draft);
    for (state, status) in [
        (RunState::Queued, SpecStatus::Queued),
        (RunState::Running, SpecStatus::Executing),
        (RunState::Failed, SpecStatus::Failed),
        (RunState::TimedOut, SpecStatus::Failed),
        (RunState::Cancelled, SpecStatus::Cancelled),
        // A run that says that all went well, and a phase that did not pass: the phase is believed.
        (RunState::Succeeded, SpecStatus::Failed),
    ] {
        ran(&mut it, state);
        assert_eq!(it.status(), status, "{state}");
    }
    pass(&mut it, Phase::DEFAULT.iter().copied());
    assert_eq!(it.status(), SpecStatus::Completed);
    // A run that failed after all had passed changes nothing of what was done.
    ran(&mut it, RunState::Failed);
    assert_eq!(it.status(), SpecStatus::Completed);
    ran(&mut it, RunState::Running);
    assert_eq!(it.status(), SpecStatus::Executing, "never done while a run works on it");
}

#[test]
fn a_spec_waits_for_whoever_approves() {
    let mut it =
        spec(SpecPlan::new(Phase::DEFAULT.iter().copied(), [Phase::Requirements, Phase::Sync]).unwrap());
    assert_eq!(it.stretch(), [Phase::Explore, Phase::Requirements]);
    pass(&mut it, [Phase::Explore, Phase::Requirements]);
    ran(&mut it, RunState::Succeeded);
    assert_eq!(it.status(), SpecStatus::AwaitingApproval);
    assert_eq!(it.stretch(), []);
    assert_eq!(it.awaits_approval(), Some(Phase::Requirements));
    approve(&mut it, Phase::Requirements);
    assert_eq!(it.stretch(), [Phase::Design, Phase::Tasks, Phase::Sync]);
    pass(&mut it, [Phase::Design, Phase::Tasks, Phase::Sync]);
    assert_eq!(it.status(), SpecStatus::AwaitingApproval, "the last phase is approved too");
    approve(&mut it, Phase::Sync);
    assert_eq!(it.status(), SpecStatus::Completed);
}

#[test]
fn the_tasks_are_done_apart_from_what_plans_them() {
    let mut it = spec(SpecPlan::new(Phase::ALL.iter().copied(), []).unwrap());
    assert_eq!(it.stretch().last(), Some(&Phase::Sync));
    pass(&mut it, Phase::ALL.iter().copied().filter(|phase| *phase != Phase::Implement));
    assert_eq!(it.stretch(), [Phase::Implement]);
    assert_eq!(it.next_phase(), Some(Phase::Implement));
}

#[test]
fn a_phase_works_with_what_passed_before_it() {
    let mut it = spec(SpecPlan::default());
    pass(&mut it, [Phase::Explore, Phase::Tasks]);
    let open = PhaseRecord { output: Some(json!({})), ..PhaseRecord::default() };
    it.phases.insert(Phase::Requirements, open);
    assert_eq!(it.before(Phase::Design).into_keys().collect::<Vec<_>>(), [Phase::Explore]);
}
