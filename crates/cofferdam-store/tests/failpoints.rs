//! A process that is killed right after a durable write has written it; one that is killed before has written nothing of it.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use cofferdam_core::{
    Action, ConfigUpdates, DesiredState, ErrorClass, KeyId, Outcome, OwnerName, Phase, PhaseState,
    ProcessName, Project, ProjectId, RunState, Scopes, Source,
};
use cofferdam_store::{
    AuditOutcome, Mandate, MessageKind, NewKey, NewTurns, Receipt, Retention, Slots, SpecEdit, Store,
};

use crate::fixture::specs::{execution, new_spec, passes, spec, spec_id, stretch};
use crate::fixture::{
    Fixture, LEASE_MS, dead, entries, event_types, left, line, lost, mandate, node, owner, request, rules,
};

const DATABASE: &str = "COFFERDAM_TEST_DATABASE";
const SIGKILL: i32 = 9;

/// The changes that the process makes on somebody's behalf, in this order, and the failpoint after each.
const CHANGES: [(Action, &str); 20] = [
    (Action::CreateRun, "store.enqueue"),
    (Action::SendMessage, "store.add_message"),
    (Action::AllowHost, "store.allow"),
    (Action::CreateProject, "store.create_project"),
    (Action::RemoveProject, "store.remove_project"),
    (Action::CreateKey, "store.create_key"),
    (Action::RevokeKey, "store.revoke_key"),
    (Action::CancelRun, "store.request_cancel"),
    (Action::CreateRun, "store.enqueue:2"),
    (Action::CancelRun, "store.request_cancel:2"),
    (Action::RemoveRun, "store.remove_run"),
    (Action::CreateRun, "store.enqueue:3"),
    (Action::RemoveDeadLetter, "store.remove_letter"),
    (Action::ChangeConfig, "store.change_config"),
    (Action::StartProcess, "store.set_desired"),
    (Action::CreateSpec, "store.create_spec"),
    (Action::UpdateSpec, "store.update_spec"),
    (Action::ExecuteSpec, "store.execute_spec"),
    (Action::DecideSpec, "store.reject_phase"),
    (Action::DecideSpec, "store.approve_phase"),
];

fn by(action: Action, now_ms: u64) -> Mandate {
    mandate("ci", action, "", now_ms)
}

/// The process that is killed: this test, started again with a failpoint armed.
#[tokio::test]
async fn victim() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let store = Store::open_sqlite(path.as_ref()).await.unwrap();
    store.enqueue(&by(Action::CreateRun, 1_000), &request(1), None).await.unwrap();
    let claimed = store.claim(&owner(1), 1_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().unwrap();
    for number in 1..=5 {
        store.append(&claimed.lease, &[line(number)]).await.unwrap();
    }
    let said =
        NewTurns { first: 1, contents: vec!["{}".to_owned()], events: vec![line(9)], ..NewTurns::default() };
    store.record_turns(&claimed.lease, &said, 1_400).await.unwrap();
    let run = &claimed.attempt.run;
    let message =
        store.add_message(&by(Action::SendMessage, 1_500), run, MessageKind::Steer, "left").await.unwrap();
    store.mark_message(&claimed.lease, message, &Receipt::Delivered { taken_as: None }, 1_600).await.unwrap();
    store.allow(&by(Action::AllowHost, 1_700), run, &"host.example:443".parse().unwrap()).await.unwrap();
    store.create_project(&by(Action::CreateProject, 1_800), &project()).await.unwrap();
    store.remove_project(&by(Action::RemoveProject, 1_850), &project().id).await.unwrap();
    store.create_key(&by(Action::CreateKey, 1_900), &key()).await.unwrap();
    store.revoke_key(&by(Action::RevokeKey, 2_000), &key().id).await.unwrap();
    store.record_refusal(&by(Action::RevokeKey, 2_050)).await.unwrap();
    store.request_cancel(&by(Action::CancelRun, 2_060), run).await.unwrap();
    store.finish(&claimed.lease, &Outcome::Succeeded, &left(&[]), 2_100).await.unwrap();
    store.enqueue(&by(Action::CreateRun, 2_200), &request(2), None).await.unwrap();
    store.request_cancel(&by(Action::CancelRun, 2_300), &request(2).id).await.unwrap();
    store.remove_run(&by(Action::RemoveRun, 2_400), &request(2).id).await.unwrap();
    store.enqueue(&by(Action::CreateRun, 2_500), &request(3), None).await.unwrap();
    let failed = store.claim(&owner(1), 2_500, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().unwrap();
    store.finish(&failed.lease, &lost(), &dead(ErrorClass::Transient), 2_600).await.unwrap();
    store.remove_letter(&by(Action::RemoveDeadLetter, 2_700), &request(3).id).await.unwrap();
    store.change_config(&by(Action::ChangeConfig, 2_800), &config()).await.unwrap();
    let wanted = [(ProcessName::Dispatcher, DesiredState::Running)];
    store.set_desired(&by(Action::StartProcess, 2_800), &node(1), &wanted).await.unwrap();
    change_specs(&store).await;
    store.expire(&Retention { runs_before_ms: Some(3_000), ..Retention::default() }).await.unwrap();
    panic!("the failpoint did not kill this process");
}

/// What a spec comes to: run 4 passes a phase that is rejected, run 5 passes it again, and run 6 follows its approval.
async fn change_specs(store: &Store) {
    let id = spec_id(1);
    store.create_spec(&by(Action::CreateSpec, 2_900), &new_spec(1)).await.expect("it is written");
    let edit = SpecEdit { title: Some("Night mode".to_owned()), ..SpecEdit::default() };
    let edited = store.update_spec(&by(Action::UpdateSpec, 2_910), &id, &edit).await.expect("it is written");
    let execution = execution(&edited, stretch(4, 1));
    store.execute_spec(&by(Action::ExecuteSpec, 2_920), &id, &execution).await.expect("it is written");
    passes(store, 4, &[Phase::Explore]).await;
    let (seen, next) = (spec(store, 1).await.revision, stretch(5, 1));
    let mandate = by(Action::DecideSpec, 2_930);
    store.reject_phase(&mandate, &id, Phase::Explore, "no tests", seen, &next).await.expect("it is written");
    passes(store, 5, &[Phase::Explore]).await;
    let (seen, next) = (spec(store, 1).await.revision, stretch(6, 1));
    let mandate = by(Action::DecideSpec, 2_940);
    store.approve_phase(&mandate, &id, Phase::Explore, seen, Some(&next)).await.expect("it is written");
}

/// What was decided about the phase that [`change_specs`] passes, if run `number` was started with that.
async fn decided(store: &Store, number: u128) -> Option<bool> {
    store.run(&request(number).id).await.ok()?;
    let explore = spec(store, 1).await.phases.remove(&Phase::Explore)?;
    explore.decision.map(|decision| decision.is_approved)
}

/// Whether the change of this number among [`CHANGES`] was made.
async fn is_made(store: &Store, number: usize) -> bool {
    let has = async |run, event: &str| event_types(store, run).await.contains(&event);
    let project = async || store.find_project("shop").await.expect("it can be read");
    let key = async || store.key_of("aa").await.expect("it can be read");
    match number {
        0 => store.run(&request(1).id).await.is_ok(),
        1 => has(&request(1).id, "message.accepted").await,
        2 => has(&request(1).id, "egress.changed").await,
        3 => project().await.is_some(),
        4 => project().await.is_none(),
        5 => key().await.is_some(),
        6 => key().await.is_some_and(|key| key.revoked_at_ms.is_some()),
        7 => has(&request(1).id, "run.cancel_requested").await,
        8 => store.run(&request(2).id).await.is_ok(),
        9 => has(&request(2).id, "run.cancelled").await,
        10 => store.run(&request(2).id).await.is_err(),
        11 => store.run(&request(3).id).await.is_ok(),
        12 => store.letter(&request(3).id).await.is_ok_and(|letter| letter.is_none()),
        13 => !store.system_config().await.expect("it can be read").is_empty(),
        14 => !store.processes(&node(1)).await.expect("they can be read").is_empty(),
        15 => store.spec(&spec_id(1)).await.expect("it can be read").is_some(),
        16 => spec(store, 1).await.title == "Night mode",
        17 => store.run(&request(4).id).await.is_ok(),
        18 => decided(store, 5).await == Some(false),
        19 => decided(store, 6).await == Some(true),
        _ => panic!("there is no change {number}"),
    }
}

/// What is written down of changes.
async fn written(store: &Store) -> Vec<String> {
    let done = entries(store).await.into_iter().filter(|entry| entry.outcome == AuditOutcome::Done);
    done.map(|entry| entry.action).collect()
}

fn expected(changes: &[(Action, &str)]) -> Vec<String> {
    changes.iter().map(|(action, _)| action.as_str().to_owned()).collect()
}

#[tokio::test]
async fn a_process_that_is_killed_between_a_change_and_its_entry_leaves_neither() {
    for number in 0..CHANGES.len() {
        let (_fixture, store) = killed_at(&format!("store.audit:{}", number + 1)).await;
        assert!(!is_made(&store, number).await, "{:?}", CHANGES[number]);
        assert_eq!(written(&store).await, expected(&CHANGES[..number]), "{:?}", CHANGES[number]);
    }
}

#[tokio::test]
async fn a_process_that_is_killed_after_the_commit_of_a_change_leaves_both() {
    for (number, (_, failpoint)) in CHANGES.iter().enumerate() {
        let (_fixture, store) = killed_at(failpoint).await;
        assert!(is_made(&store, number).await, "{failpoint}");
        assert_eq!(written(&store).await, expected(&CHANGES[..=number]), "{failpoint}");
    }
}

fn config() -> ConfigUpdates {
    [("LLM_EXECUTOR".to_owned(), Some("codex".to_owned()))].into()
}

fn project() -> Project {
    let name = "shop".parse().expect("a plain name");
    Project { id: ProjectId::new(1, 1), name, source: Source::Empty, max_concurrency: None }
}

fn key() -> NewKey {
    let (name, owner, sha256) = ("ci".to_owned(), OwnerName::system(), "aa".to_owned());
    NewKey { id: KeyId::new(1, 1), name, owner, sha256, scopes: Scopes::all() }
}

async fn killed_at(failpoint: &str) -> (Fixture, Store) {
    let fixture = Fixture::sqlite();
    let status = Command::new(std::env::current_exe().expect("this test is a program"))
        .args(["--exact", "failpoints::victim"])
        .env(DATABASE, fixture.path())
        .env("COFFERDAM_FAILPOINT", failpoint)
        .status()
        .expect("it starts again");
    assert_eq!(status.signal(), Some(SIGKILL), "{status}");
    let store = fixture.open().await;
    (fixture, store)
}

#[tokio::test]
async fn a_run_whose_acceptor_is_killed_after_the_commit_is_queued() {
    let (_fixture, store) = killed_at("store.enqueue").await;
    assert_eq!(store.run(&request(1).id).await.unwrap().state, RunState::Queued);
}

#[tokio::test]
async fn a_claim_whose_node_is_killed_after_the_commit_counts() {
    let (_fixture, store) = killed_at("store.claim").await;
    assert_eq!(store.run(&request(1).id).await.unwrap().attempts, 1);
}

#[tokio::test]
async fn a_failpoint_can_wait_for_a_later_hit() {
    let (_fixture, store) = killed_at("store.append:3").await;
    assert_eq!(store.event_count(&request(1).id).await.unwrap(), 2 + 3);
}

#[tokio::test]
async fn a_turn_whose_writer_is_killed_after_the_commit_is_there_with_its_event() {
    let (_fixture, store) = killed_at("store.record_turns").await;
    let run = request(1).id;
    let adopted = store.adopt(&node(1), &run, 2_000, LEASE_MS).await.unwrap().unwrap();
    let turns = store.turns(&adopted.lease).await.unwrap();
    assert_eq!(turns.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>(), ["{}"]);
    assert_eq!(store.event_count(&run).await.unwrap(), 2 + 5 + 1 + 1);
}

#[tokio::test]
async fn a_phase_whose_writer_is_killed_after_the_commit_has_passed_with_its_event() {
    let (_fixture, store) = killed_at("store.record_phase").await;
    let explore = spec(&store, 1).await.phases.remove(&Phase::Explore).expect("it was tried");
    assert_eq!((explore.state, explore.run), (PhaseState::Passed, Some(request(4).id)));
    assert_eq!(event_types(&store, &request(4).id).await.len(), 2 + 1);
}

#[tokio::test]
async fn a_message_whose_taker_is_killed_after_the_commit_waits() {
    let (_fixture, store) = killed_at("store.add_message").await;
    let adopted = store.adopt(&node(1), &request(1).id, 2_000, LEASE_MS).await.unwrap().unwrap();
    assert_eq!(store.pending_messages(&adopted.lease).await.unwrap().len(), 1);
    assert_eq!(event_types(&store, &request(1).id).await[8..], ["message.accepted", "run.adopted"]);
}

#[tokio::test]
async fn a_receipt_whose_writer_is_killed_after_the_commit_is_not_written_twice() {
    let (_fixture, store) = killed_at("store.mark_message").await;
    let adopted = store.adopt(&node(1), &request(1).id, 2_000, LEASE_MS).await.unwrap().unwrap();
    assert_eq!(store.pending_messages(&adopted.lease).await.unwrap(), []);
    let expected = ["message.accepted", "message.delivered", "run.adopted"];
    assert_eq!(event_types(&store, &request(1).id).await[8..], expected);
}

#[tokio::test]
async fn an_allowance_whose_giver_is_killed_after_the_commit_holds() {
    let (_fixture, store) = killed_at("store.allow").await;
    let run = request(1).id;
    assert_eq!(store.allowances(&run).await.unwrap(), ["host.example:443".parse().unwrap()]);
    assert_eq!(event_types(&store, &run).await.last().copied(), Some("egress.changed"));
}

#[tokio::test]
async fn a_project_whose_maker_is_killed_after_the_commit_is_registered() {
    let (_fixture, store) = killed_at("store.create_project").await;
    assert_eq!(store.find_project("shop").await.unwrap(), Some(project()));
}

#[tokio::test]
async fn a_project_whose_remover_is_killed_after_the_commit_is_gone() {
    let (_fixture, store) = killed_at("store.remove_project").await;
    assert_eq!(store.find_project("shop").await.unwrap(), None);
}

#[tokio::test]
async fn a_key_whose_maker_is_killed_after_the_commit_opens() {
    let (_fixture, store) = killed_at("store.create_key").await;
    let kept = store.key_of("aa").await.unwrap().expect("it is on record");
    assert_eq!((kept.scopes, kept.revoked_at_ms), (Scopes::all(), None));
}

#[tokio::test]
async fn a_key_whose_revoker_is_killed_after_the_commit_is_revoked() {
    let (_fixture, store) = killed_at("store.revoke_key").await;
    assert_eq!(store.key_of("aa").await.unwrap().unwrap().revoked_at_ms, Some(2_000));
}

#[tokio::test]
async fn a_refusal_whose_writer_is_killed_after_the_commit_is_counted() {
    let (_fixture, store) = killed_at("store.record_refusal").await;
    let last = entries(&store).await.pop().expect("there are some");
    assert_eq!((last.outcome, last.count, last.action.as_str()), (AuditOutcome::Refused, 1, "key.revoke"));
}

#[tokio::test]
async fn what_was_forgotten_stays_so_when_its_remover_is_killed_after_the_commit() {
    let (_fixture, store) = killed_at("store.expire").await;
    assert!(store.run(&request(1).id).await.is_err());
}
