//! The runs of a spec: one at a time, what they bring, and what is decided between them.

use cofferdam_core::{
    Action, EventType, NewEvent, Outcome, Phase, PhaseState, RunRequest, RunState, Spec, SpecRun, SpecStatus,
};
use cofferdam_store::{Decided, Error, Executed, PhaseNews, SpecExecution, Store};
use serde_json::json;

use crate::fixture::specs::{
    claimed, created, ends, executed, execution, news, passed, plan, spec, spec_id, stretch,
};
use crate::fixture::{LEASE_MS, at, entries, event_types, lost, mandate, node, request};
use crate::on_every_store;

async fn execute(store: &Store, execution: &SpecExecution) -> Executed {
    let mandate = mandate("ci", Action::ExecuteSpec, "a spec", 3_000);
    store.execute_spec(&mandate, &spec_id(1), execution).await.expect("it can be asked")
}

async fn approve(store: &Store, seen: &Spec, next: Option<&RunRequest>) -> Decided {
    let mandate = mandate("lead", Action::DecideSpec, "a spec", 3_000);
    let decided = store.approve_phase(&mandate, &spec_id(1), Phase::Explore, seen.revision, next).await;
    decided.expect("it can be asked")
}

async fn reject(store: &Store, seen: &Spec, next: &RunRequest) -> Decided {
    let mandate = mandate("lead", Action::DecideSpec, "a spec", 3_000);
    let decided =
        store.reject_phase(&mandate, &spec_id(1), Phase::Explore, "no tests", seen.revision, next).await;
    decided.expect("it can be asked")
}

/// A spec whose run has passed explore, which waits for somebody to approve that.
async fn waiting(store: &Store) -> Spec {
    created(store, 1).await;
    passed(store, 1, 1, &[Phase::Explore]).await;
    let waiting = spec(store, 1).await;
    assert_eq!(waiting.status(), SpecStatus::AwaitingApproval);
    waiting
}

on_every_store! {
    async fn twenty_executes_at_once_start_one_run(fixture: Fixture) {
        let stores = [fixture.open().await, fixture.open().await];
        let made = created(&stores[0], 1).await;
        let before = entries(&stores[0]).await.len();
        let asked: Vec<_> = (1..=20_u128)
            .map(|number| {
                let store = stores[number as usize % 2].clone();
                let execution = execution(&made, stretch(number, 1));
                tokio::spawn(async move { execute(&store, &execution).await })
            })
            .collect();
        let (mut started, mut found) = (Vec::new(), Vec::new());
        for one in asked {
            match one.await.unwrap() {
                Executed::Started(run) => started.push(run),
                Executed::AlreadyRunning(run) => found.push(run),
                Executed::Changed => panic!("whoever comes too late finds the run"),
            }
        }
        assert_eq!((started.len(), found.len()), (1, 19));
        assert!(found.iter().all(|run| *run == started[0]), "{found:?}");
        let live = SpecRun { run: started[0].clone(), state: RunState::Queued };
        assert_eq!(stores[0].spec_runs(&spec_id(1)).await.unwrap(), std::slice::from_ref(&live));
        let now = spec(&stores[0], 1).await;
        assert_eq!((now.status(), now.last_run, now.plan), (SpecStatus::Queued, Some(live), plan()));
        assert_eq!(entries(&stores[0]).await.len(), before + 1);
        assert_eq!(event_types(&stores[0], &started[0]).await, ["run.queued"]);
    }

    async fn an_execution_of_what_has_changed_since_is_not_done(fixture: Fixture) {
        let store = fixture.open().await;
        let made = created(&store, 1).await;
        let edit = cofferdam_store::SpecEdit { title: Some("Other".to_owned()), ..Default::default() };
        store.update_spec(&at(1_100), &spec_id(1), &edit).await.unwrap();
        let before = (spec(&store, 1).await, entries(&store).await);
        assert_eq!(execute(&store, &execution(&made, stretch(1, 1))).await, Executed::Changed);
        assert_eq!((spec(&store, 1).await, entries(&store).await), before);
        assert_eq!(executed(&store, 1, 1).await, Executed::Started(request(1).id));
    }

    async fn the_same_execution_again_is_the_same_run(fixture: Fixture) {
        let store = fixture.open().await;
        let made = created(&store, 1).await;
        let first = execution(&made, stretch(1, 1));
        assert_eq!(execute(&store, &first).await, Executed::Started(request(1).id));
        let claimed = claimed(&store, 1).await;
        ends(&store, &claimed, lost()).await;
        let before = (spec(&store, 1).await, entries(&store).await);
        assert_eq!(execute(&store, &first).await, Executed::Started(request(1).id));
        assert_eq!((spec(&store, 1).await, entries(&store).await), before);
    }

    async fn a_run_is_of_its_spec_and_of_the_specs_owner(fixture: Fixture) {
        let store = fixture.open().await;
        let made = created(&store, 1).await;
        let others = mandate("lead", Action::ExecuteSpec, "a spec", 1_100);
        store.execute_spec(&others, &spec_id(1), &execution(&made, stretch(1, 1))).await.unwrap();
        let run = store.run(&request(1).id).await.unwrap();
        assert_eq!((&run.owner, run.created_at_ms), (&made.owner, 1_100));
        let other = store.execute_spec(&others, &spec_id(1), &execution(&made, stretch(2, 2))).await;
        assert!(matches!(other, Err(Error::Text { what: "request", .. })), "{other:?}");
        let nobodys = store.execute_spec(&others, &spec_id(9), &execution(&made, stretch(2, 9))).await;
        assert!(matches!(nobodys, Err(Error::NoSuchSpec { .. })), "{nobodys:?}");
        created(&store, 2).await;
        let taken = execution(&spec(&store, 2).await, stretch(1, 2));
        let taken = store.execute_spec(&others, &spec_id(2), &taken).await;
        assert!(matches!(taken, Err(Error::RunExists { .. })), "{taken:?}");
    }

    async fn a_run_follows_when_the_one_before_has_ended(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        executed(&store, 1, 1).await;
        store.request_cancel(&at(1_200), &request(1).id).await.unwrap();
        assert_eq!(spec(&store, 1).await.status(), SpecStatus::Cancelled);
        assert_eq!(executed(&store, 2, 1).await, Executed::Started(request(2).id));
        let runs = store.spec_runs(&spec_id(1)).await.unwrap();
        let runs: Vec<_> = runs.into_iter().map(|one| (one.run, one.state)).collect();
        assert_eq!(runs, [(request(2).id, RunState::Queued), (request(1).id, RunState::Cancelled)]);
        assert_eq!(store.spec_request(&spec_id(1)).await.unwrap(), Some(stretch(2, 1)));
    }

    async fn a_phase_that_is_done_again_is_done_with_all_after_it(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        passed(&store, 1, 1, &[Phase::Explore, Phase::Design]).await;
        let seen = spec(&store, 1).await;
        let again = SpecExecution { restart_from: Some(Phase::Prd), ..execution(&seen, stretch(2, 1)) };
        assert_eq!(execute(&store, &again).await, Executed::Started(request(2).id));
        let now = spec(&store, 1).await;
        assert!(now.has_passed(Phase::Explore));
        let design = now.phase(Phase::Design).unwrap();
        assert_eq!((design.state, design.tries, design.output.is_some()), (PhaseState::Open, 0, true));
        let progress = store.spec_progress(&claimed(&store, 2).await.lease).await.unwrap();
        assert_eq!(progress.outputs.keys().collect::<Vec<_>>(), [&Phase::Explore]);
        assert!(progress.feedback.is_empty() && progress.tries.is_empty(), "{progress:?}");
    }

    async fn a_phase_that_failed_has_its_tries_again_and_hears_why(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        executed(&store, 1, 1).await;
        let first = claimed(&store, 1).await;
        store.record_phase(&first.lease, &news(Phase::Explore, 3, PhaseState::Failed), 1_300).await.unwrap();
        ends(&store, &first, lost()).await;
        assert_eq!(spec(&store, 1).await.status(), SpecStatus::Failed);
        executed(&store, 2, 1).await;
        let explore = spec(&store, 1).await.phases.remove(&Phase::Explore).unwrap();
        assert_eq!((explore.state, explore.tries), (PhaseState::Open, 0));
        let progress = store.spec_progress(&claimed(&store, 2).await.lease).await.unwrap();
        assert_eq!(progress.feedback[&Phase::Explore], ["explore lacks detail in try 3"]);
        assert!(progress.tries.is_empty(), "{progress:?}");
    }

    async fn an_approval_is_recorded_with_the_run_that_follows(fixture: Fixture) {
        let store = fixture.open().await;
        let seen = waiting(&store).await;
        let next = stretch(2, 1);
        assert_eq!(approve(&store, &seen, Some(&next)).await, Decided::Done(Some(next.id.clone())));
        let now = spec(&store, 1).await;
        let decision = now.phase(Phase::Explore).unwrap().decision.clone().unwrap();
        assert_eq!((decision.is_approved, decision.at_ms, decision.reason), (true, 3_000, None));
        assert_eq!((now.status(), now.revision), (SpecStatus::Queued, seen.revision + 1));
        assert_eq!(store.run(&next.id).await.unwrap().owner, now.owner, "whoever approved");
        let before = (now, entries(&store).await);
        assert_eq!(approve(&store, &seen, Some(&next)).await, Decided::Done(Some(next.id.clone())));
        assert_eq!((spec(&store, 1).await, entries(&store).await), before);
    }

    async fn an_approval_may_be_the_end(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        passed(&store, 1, 1, &[Phase::Explore, Phase::Design]).await;
        let seen = spec(&store, 1).await;
        assert_eq!(approve(&store, &seen, None).await, Decided::Done(None));
        let before = (spec(&store, 1).await, entries(&store).await);
        assert_eq!(before.0.status(), SpecStatus::Completed);
        assert_eq!(approve(&store, &seen, None).await, Decided::Done(None), "the same, asked again");
        assert_eq!((spec(&store, 1).await, entries(&store).await), before);
    }

    async fn a_rejection_opens_the_phase_and_is_told_to_the_next_run(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        passed(&store, 1, 1, &[Phase::Explore, Phase::Design]).await;
        let seen = spec(&store, 1).await;
        let next = stretch(2, 1);
        assert_eq!(reject(&store, &seen, &next).await, Decided::Done(Some(next.id.clone())));
        let now = spec(&store, 1).await;
        let explore = now.phase(Phase::Explore).unwrap();
        assert_eq!((explore.state, explore.tries, explore.reasons.as_slice()), (PhaseState::Open, 0, &["no tests".to_owned()][..]));
        let decision = explore.decision.clone().unwrap();
        assert_eq!((decision.is_approved, decision.reason.as_deref()), (false, Some("no tests")));
        assert_eq!(now.phase(Phase::Design).unwrap().state, PhaseState::Open);
        let before = (now, entries(&store).await);
        assert_eq!(reject(&store, &seen, &next).await, Decided::Done(Some(next.id.clone())));
        assert_eq!((spec(&store, 1).await, entries(&store).await), before);

        let second = claimed(&store, 2).await;
        let feedback = async || store.spec_progress(&second.lease).await.unwrap().feedback;
        assert_eq!(feedback().await[&Phase::Explore], ["no tests"]);
        store.record_phase(&second.lease, &news(Phase::Explore, 1, PhaseState::Open), 1_300).await.unwrap();
        assert_eq!(feedback().await[&Phase::Explore], ["no tests", "explore lacks detail in try 1"]);
        store.record_phase(&second.lease, &news(Phase::Explore, 2, PhaseState::Passed), 1_400).await.unwrap();
        assert!(feedback().await.is_empty());
        ends(&store, &second, Outcome::Succeeded).await;
        let now = spec(&store, 1).await;
        assert_eq!((now.status(), now.awaits_approval()), (SpecStatus::AwaitingApproval, Some(Phase::Explore)));
        assert_eq!(now.phase(Phase::Explore).unwrap().decision, None, "it is about what was there before");
    }

    async fn nothing_is_decided_about_what_does_not_wait(fixture: Fixture) {
        let store = fixture.open().await;
        let made = created(&store, 1).await;
        assert_eq!(approve(&store, &made, None).await, Decided::NotWaiting);
        executed(&store, 1, 1).await;
        let live = claimed(&store, 1).await;
        store.record_phase(&live.lease, &news(Phase::Explore, 1, PhaseState::Passed), 1_300).await.unwrap();
        let early = spec(&store, 1).await;
        assert_eq!(approve(&store, &early, None).await, Decided::NotWaiting, "its run has not ended");
        ends(&store, &live, Outcome::Succeeded).await;
        let before = (spec(&store, 1).await, entries(&store).await);
        assert_eq!(reject(&store, &made, &stretch(2, 1)).await, Decided::Changed);
        let lead = mandate("lead", Action::DecideSpec, "a spec", 3_000);
        let other = store.approve_phase(&lead, &spec_id(1), Phase::Design, before.0.revision, None).await;
        assert_eq!(other.unwrap(), Decided::NotWaiting);
        assert_eq!((spec(&store, 1).await, entries(&store).await), before);
    }

    async fn what_a_try_brought_is_kept_with_its_events(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        executed(&store, 1, 1).await;
        let live = claimed(&store, 1).await;
        let before = spec(&store, 1).await.revision;
        let event = |seq| NewEvent { worker_seq: Some(seq), ..NewEvent::new(1_300, EventType::Log, json!({})) };
        let first = PhaseNews { events: vec![event(1)], ..news(Phase::Explore, 1, PhaseState::Open) };
        let told = store.record_phase(&live.lease, &first, 1_300).await.unwrap();
        assert_eq!(told.iter().map(|event| event.seq).collect::<Vec<_>>(), [3]);
        let now = spec(&store, 1).await;
        let record = now.phase(Phase::Explore).unwrap();
        assert_eq!((record.state, record.tries, record.score), (PhaseState::Open, 1, Some(0.5)));
        assert_eq!((&record.output, &record.reasons, record.run.as_ref()), (&first.output, &first.reasons, Some(&request(1).id)));
        assert_eq!((now.revision, now.updated_at_ms), (before + 1, 1_300));
        let nothing = PhaseNews { output: None, score: None, ..news(Phase::Explore, 2, PhaseState::Open) };
        store.record_phase(&live.lease, &nothing, 1_310).await.unwrap();
        assert_eq!(spec(&store, 1).await.phase(Phase::Explore).unwrap().output, None);
        // The worker's output is read again from its beginning.
        assert_eq!(store.record_phase(&live.lease, &first, 1_320).await.unwrap(), []);
        assert_eq!(spec(&store, 1).await.phase(Phase::Explore).unwrap().tries, 2);
        assert_eq!(event_types(&store, &request(1).id).await.len(), 4);
        assert_eq!(store.check().await.unwrap().problems, []);
    }

    async fn a_phase_that_has_passed_is_never_overwritten(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        executed(&store, 1, 1).await;
        let live = claimed(&store, 1).await;
        store.record_phase(&live.lease, &news(Phase::Explore, 1, PhaseState::Passed), 1_300).await.unwrap();
        let passed = spec(&store, 1).await;
        for state in [PhaseState::Open, PhaseState::Failed, PhaseState::Passed] {
            let later = PhaseNews { events: Vec::new(), ..news(Phase::Explore, 3, state) };
            assert_eq!(store.record_phase(&live.lease, &later, 1_400).await.unwrap(), []);
            assert_eq!(spec(&store, 1).await, passed, "{state}");
        }
    }

    async fn whoever_has_lost_the_run_neither_reads_nor_writes_how_far_it_is(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        executed(&store, 1, 1).await;
        let old = claimed(&store, 1).await;
        store.record_phase(&old.lease, &news(Phase::Explore, 1, PhaseState::Passed), 1_300).await.unwrap();
        let new = store.adopt(&node(1), &request(1).id, 1_400, LEASE_MS).await.unwrap().unwrap();
        let before = (spec(&store, 1).await, event_types(&store, &request(1).id).await);
        let late = store.record_phase(&old.lease, &news(Phase::Design, 1, PhaseState::Passed), 1_500).await;
        assert!(matches!(late, Err(Error::StaleLease { .. })), "{late:?}");
        assert!(matches!(store.spec_progress(&old.lease).await, Err(Error::StaleLease { .. })));
        assert_eq!((spec(&store, 1).await, event_types(&store, &request(1).id).await), before);
        let progress = store.spec_progress(&new.lease).await.unwrap();
        assert_eq!(progress.outputs[&Phase::Explore], json!({ "of": "explore", "try": 1 }));
        ends(&store, &new, Outcome::Succeeded).await;
        let late = store.record_phase(&new.lease, &news(Phase::Design, 1, PhaseState::Passed), 2_500).await;
        assert!(matches!(late, Err(Error::AlreadyFinal { .. })), "{late:?}");
    }

    async fn the_next_attempt_goes_on_where_the_one_before_was(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        executed(&store, 1, 1).await;
        let first = claimed(&store, 1).await;
        store.record_phase(&first.lease, &news(Phase::Explore, 1, PhaseState::Passed), 1_300).await.unwrap();
        store.record_phase(&first.lease, &news(Phase::Design, 2, PhaseState::Open), 1_310).await.unwrap();
        let left = cofferdam_store::Left::default();
        store.schedule_retry(&first.lease, &lost(), 1_200, &left, 1_320).await.unwrap();
        assert_eq!(spec(&store, 1).await.status(), SpecStatus::Queued);
        let progress = store.spec_progress(&claimed(&store, 1).await.lease).await.unwrap();
        assert_eq!(progress.outputs.keys().collect::<Vec<_>>(), [&Phase::Explore]);
        assert_eq!(progress.tries.into_iter().collect::<Vec<_>>(), [(Phase::Design, 2)]);
        assert_eq!(progress.feedback[&Phase::Design], ["design lacks detail in try 2"]);
    }
}
