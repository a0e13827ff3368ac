//! Records that an earlier program has written, with runs in every state: they open, are brought to the newest schema, say
//! what was written, and go on.

#[path = "../examples/write_fixture/runs.rs"]
mod runs;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;

use cofferdam_core::{
    Action, AttemptRef, ErrorClass, EventType, FailureClass, KeyId, MessageKind, NewEvent, Outcome,
    OwnerName, ProjectId, Role, RunRequest, RunState, Spent, TroubleKind,
};
use cofferdam_store::{
    ArtifactPlace, AuditOutcome, ClaimRules, Claimed, Error, Left, Letter, NodeHealth, Owner, Receipt,
    Replay, Retention, RunFilter, Slots, Store, StoreOptions,
};
use serde_json::json;

use crate::fixture::{Fixture, at, entries, event_types, mandate};
use runs::{
    DUE_MS, EVENT_TYPES, FAILURES, KEY, LEASE_MS, NOW_MS, Name, SAID, SHORT_LEASE_MS, artifacts, failure,
    has_letter, letter, lost, node, owner, place, seal, spent,
};

/// A while after it was written; no lease lives, and nothing is due that was not.
const LATER_MS: u64 = NOW_MS + LEASE_MS + 1_000;

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v0.1").join(name)
}

/// A copy of the file.
fn sqlite() -> Fixture {
    let fixture = Fixture::sqlite();
    std::fs::copy(kept("cofferdam.db"), fixture.path()).expect("the file is kept");
    fixture
}

/// A database that the dump was read into. `None` where there is no PostgreSQL.
async fn postgres() -> Option<Fixture> {
    let fixture = Fixture::postgres().await?;
    let StoreOptions::Postgres(options) = fixture.options() else { panic!("it is a database") };
    // A fresh one has the newest schema.
    let read = Command::new("psql")
        .args([
            "-qAtX",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            "DROP SCHEMA public CASCADE; CREATE SCHEMA public",
            "-f",
        ])
        .arg(kept("cofferdam.sql"))
        .arg(options.url.secret())
        .output()
        .expect("psql is installed with the server");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    Some(fixture)
}

/// Runs each body on both records: `name::sqlite` and `name::postgres`.
macro_rules! on_both_records {
    ($(async fn $name:ident($store:ident: Store) $body:block)+) => {
        $(
            mod $name {
                use super::*;

                async fn body($store: Store) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn sqlite() {
                    let fixture = super::sqlite();
                    body(fixture.open().await).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn postgres() {
                    let Some(fixture) = super::postgres().await else { return };
                    body(fixture.open().await).await;
                }
            }
        )+
    };
}

async fn is_consistent(store: &Store) {
    let examined = store.check().await.expect("it can be looked at");
    assert_eq!(examined.problems, [], "{examined:?}");
}

async fn claim(store: &Store, name: Name, owner: &Owner, now_ms: u64) -> Option<Claimed> {
    let rules = ClaimRules::of(Slots::Unlimited);
    store.claim_run(&name.id(), owner, now_ms, LEASE_MS, &rules).await.expect("claiming works")
}

/// Takes up what the node of this number had, as it does when it is started again.
async fn adopt(store: &Store, name: Name, number: u128) -> Claimed {
    let adopted = store.adopt(&node(number), &name.id(), LATER_MS, LEASE_MS).await.expect("adopting works");
    adopted.expect("the node holds it")
}

async fn finish(store: &Store, claimed: &Claimed, outcome: &Outcome) -> RunState {
    store.finish(&claimed.lease, outcome, &Left::default(), LATER_MS).await.expect("it ends").state
}

fn line(number: u64) -> NewEvent {
    NewEvent {
        at_ms: LATER_MS,
        event_type: EventType::AgentMessage,
        worker_seq: Some(number),
        data: json!({ "text": format!("line {number}") }),
    }
}

/// State, attempts, number of events, whether it is a dead letter.
fn expected() -> Vec<(Name, RunState, u32, u64, Letter)> {
    use RunState::{Cancelled, Failed, Queued, Running, Succeeded, TimedOut};
    let mut expected = vec![
        (Name::Forgotten, Succeeded, 1, 8, Letter::None),
        (Name::Queued, Queued, 0, 1, Letter::None),
        (Name::Keyed, Queued, 0, 1, Letter::None),
        (Name::Bound, Queued, 0, 1, Letter::None),
        (Name::Reserved, Queued, 0, 1, Letter::None),
        (Name::Waiting, Queued, 0, 1, Letter::None),
        (Name::Retried, Queued, 1, 4, Letter::None),
        (Name::InLane, Queued, 0, 1, Letter::None),
        (Name::FirstMessage, Queued, 0, 1, Letter::None),
        (Name::SecondMessage, Queued, 0, 1, Letter::None),
        (Name::Running, Running, 1, 15, Letter::None),
        (Name::HoldsLane, Running, 1, 2, Letter::None),
        (Name::Expired, Running, 1, 5, Letter::None),
        (Name::Cancelling, Running, 1, 3, Letter::None),
        (Name::Succeeded, Succeeded, 1, 6, Letter::None),
        (Name::CancelledQueued, Cancelled, 0, 3, Letter::None),
        (Name::CancelledRunning, Cancelled, 1, 7, Letter::None),
        (Name::TimedOut, TimedOut, 1, 3, Letter::None),
        (Name::DeadLetter, Failed, 2, 6, Letter::Dead),
        (Name::Replay, Succeeded, 1, 3, Letter::None),
        (Name::OverBudget, Failed, 1, 4, Letter::None),
        (Name::Talkative, Succeeded, 1, 3 + EVENT_TYPES.len() as u64, Letter::None),
    ];
    expected.extend((0..FAILURES.len()).map(|number| match has_letter(number) {
        true => (Name::Failed(number), Failed, 1, 4, Letter::Dead),
        false => (Name::Failed(number), Failed, 1, 3, Letter::None),
    }));
    expected
}

#[tokio::test]
async fn they_are_brought_to_the_newest_schema() {
    // SQLite keeps the number in the file's header. Opening the file itself would leave files beside it.
    let old = std::fs::read(kept("cofferdam.db")).expect("the file is kept");
    assert_eq!(old[60..64], 4_u32.to_be_bytes(), "the file is as it was written");
    let newest = Fixture::sqlite().open().await.schema().await.expect("a new record").schema_version;
    assert_eq!(sqlite().open().await.schema().await.expect("it opens").schema_version, newest);
    let (Some(old), Some(new)) = (postgres().await, Fixture::postgres().await) else { return };
    let newest = new.open().await.schema().await.expect("a new record").schema_version;
    assert_eq!(old.open().await.schema().await.expect("it opens").schema_version, newest);
}

on_both_records! {
    async fn every_run_is_as_it_was_written(store: Store) {
        is_consistent(&store).await;
        for (name, state, attempts, last_seq, letter) in expected() {
            let record = store.run(&name.id()).await.expect("it is on record");
            let found = (record.state, record.attempts, record.last_seq, record.letter);
            assert_eq!(found, (state, attempts, last_seq, letter), "{name:?}");
            assert_eq!(record.owner, OwnerName::system(), "{name:?} is from before there were owners");
            // What holds unless a request says otherwise may change; what was asked does not.
            let policy = record.request.policy.clone();
            assert_eq!(record.request, RunRequest { policy, ..name.request() }, "{name:?}");
            assert_eq!(record.outcome.is_some(), state.is_final(), "{name:?}");
            assert_eq!(record.finished_at_ms.is_some(), state.is_final(), "{name:?}");
            assert_eq!(record.node.is_some(), state == RunState::Running, "{name:?}");
            assert_eq!(store.attempts(&name.id()).await.expect("they can be read").len() as u32, attempts);
            if name != Name::Forgotten {
                assert_eq!(event_types(&store, &name.id()).await.len() as u64, last_seq, "{name:?}");
            }
        }
        let listed = store.list_runs(&RunFilter::newest(u32::MAX)).await.expect("they can be listed");
        assert_eq!(listed.len(), expected().len());
        let of_system = RunFilter { owner: Some(OwnerName::system()), ..RunFilter::newest(u32::MAX) };
        assert_eq!(store.list_runs(&of_system).await.expect("they can be listed"), listed);
        let kept = store.events_after(&Name::Forgotten.id(), 0, 100).await.expect("they can be read");
        assert_eq!(kept.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 8]);
        let retried = store.run(&Name::Retried.id()).await.expect("it is on record");
        assert_eq!((retried.not_before_ms, retried.seal), (DUE_MS, None));
    }

    async fn every_end_is_as_it_was_written(store: Store) {
        let outcome = async |name: Name| store.run(&name.id()).await.expect("it is on record").outcome;
        assert_eq!(outcome(Name::Succeeded).await, Some(Outcome::Succeeded));
        assert_eq!(outcome(Name::CancelledQueued).await, Some(Outcome::Cancelled));
        assert_eq!(outcome(Name::CancelledRunning).await, Some(Outcome::Cancelled));
        assert_eq!(outcome(Name::TimedOut).await, Some(Outcome::TimedOut { timeout_ms: 600_000 }));
        assert_eq!(outcome(Name::DeadLetter).await, Some(lost()));
        let letters = store.letters(None).await.expect("they can be read");
        for (number, (_, error_class)) in FAILURES.into_iter().enumerate() {
            let name = Name::Failed(number);
            assert_eq!(outcome(name).await, Some(failure(number)));
            let kept = letters.iter().find(|kept| kept.run == name.id()).map(|kept| &kept.letter);
            assert_eq!(kept, has_letter(number).then(|| letter(name, error_class)).as_ref());
        }
        let dead = store.letter(&Name::DeadLetter.id()).await.expect("it can be read").expect("it is one");
        assert_eq!(dead.letter, letter(Name::DeadLetter, ErrorClass::Transient));
        assert_eq!(dead.replay, Some(Replay { run: Name::Replay.id(), owner: OwnerName::system(), state: RunState::Succeeded }));
        let first = AttemptRef { run: Name::DeadLetter.id(), number: 1 };
        assert_eq!(store.outcome_of(&first).await.expect("it can be read"), Some(lost()));
        assert_eq!(store.letter_runs().await.expect("they can be read").len(), letters.len());
        assert_eq!(store.letters(Some(&OwnerName::system())).await.expect("they can be read"), letters);
        let budget = store.budget_exceeded(&Name::OverBudget.id()).await.expect("it can be read");
        assert_eq!(budget.as_deref(), Some("cost"));
    }

    async fn the_evidence_is_as_it_was_written(store: Store) {
        let succeeded = store.run(&Name::Succeeded.id()).await.expect("it is on record");
        assert_eq!(succeeded.seal, Some(seal()));
        let found = store.artifacts(&Name::Succeeded.id()).await.expect("they can be read");
        let found: Vec<_> = found.into_iter().map(|one| (one.attempt, one.name, one.place, one.bytes, one.sha256)).collect();
        let written = artifacts().into_iter().map(|one| (1, one.name, one.place, one.bytes, one.sha256));
        assert_eq!(found, written.collect::<Vec<_>>());
        let told = store.events_after(&Name::Talkative.id(), 2, 100).await.expect("they can be read");
        let types: Vec<&str> = told.iter().map(|event| event.event_type.as_str()).collect();
        assert_eq!(types[..EVENT_TYPES.len()], EVENT_TYPES);
        for event in &told[..EVENT_TYPES.len()] {
            assert_eq!(event.data, json!({ "text": SAID, "big": u64::MAX }));
        }
        let run = Name::Running.id();
        let messages = store.messages_page(&run, 0, 500).await.expect("they can be read").rows;
        let said: Vec<_> = messages.iter().map(|one| (one.message.kind, one.message.content.as_str(), one.receipt.clone())).collect();
        let refused = |reason: &str| Some(Receipt::Refused { reason: reason.to_owned() });
        assert_eq!(said, [
            (MessageKind::Steer, "leave the tests alone", Some(Receipt::Delivered { taken_as: None })),
            (MessageKind::Interrupt, "stop", refused("unsupported")),
            (MessageKind::FollowUp, "and document it ☃", None),
        ]);
        let late = store.messages_page(&Name::CancelledRunning.id(), 0, 500).await.expect("they can be read").rows;
        assert_eq!(late[0].receipt, refused("run_ended"));
        let attempt = AttemptRef { run: run.clone(), number: 1 };
        assert_eq!(store.spent(&run).await.expect("it is known"), Spent { cost_micro_usd: 110, tokens: 67, calls: 3 });
        assert_eq!(store.calls_in_flight(&attempt).await.expect("it is known"), 1);
        let rules = store.allowances(&run).await.expect("they can be read");
        let mut rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        rules.sort();
        assert_eq!(rules, ["*.crates.example:443", "registry.example:443"]);
        assert_eq!(store.last_worker_seq(&attempt).await.expect("it is known"), Some(3));
    }

    async fn what_is_around_the_runs_is_as_it_was_written(store: Store) {
        let nodes = store.nodes().await.expect("they can be read");
        let resting = NodeHealth::Resting { reason: "no engine".to_owned(), until_ms: NOW_MS + 30_000 };
        let health: Vec<_> = nodes.iter().map(|node| (node.report.name.as_str(), node.report.health.clone())).collect();
        assert_eq!(health, [("n1", NodeHealth::Ready), ("n2", NodeHealth::Draining), ("n3", resting)]);
        let projects = store.projects().await.expect("they can be read");
        let projects: Vec<_> = projects.iter().map(|one| (one.name.as_str(), one.max_concurrency)).collect();
        assert_eq!(projects, [("acme/bar", None), ("acme/shop", NonZeroU32::new(3))]);
        let keys = store.keys().await.expect("they can be read");
        assert!(keys.iter().all(|key| key.owner == OwnerName::system()), "{keys:?}");
        let keys: Vec<_> = keys.iter().map(|key| (key.name.as_str(), key.used_at_ms, key.revoked_at_ms)).collect();
        assert_eq!(keys, [("first", Some(NOW_MS + 60_000), None), ("revoked", None, Some(NOW_MS + 70_000))]);
        let found = store.key_of(&"11".repeat(32)).await.expect("it can be read").expect("it is one");
        assert_eq!((found.id, found.scopes.to_string().as_str()), (KeyId::new(NOW_MS, 1), "read,run"));
        let changes = store.audit_before(u64::MAX, 10).await.expect("they can be read");
        let numbers: Vec<_> = changes.iter().map(|one| one.data["number"].as_u64()).collect();
        assert_eq!(numbers, [Some(3), Some(2), Some(1)]);
        assert!(changes.iter().all(|one| (one.outcome, one.count) == (AuditOutcome::Done, 1)), "{changes:?}");
    }

    async fn queued_runs_are_claimed_as_their_placement_says(store: Store) {
        let bound = Owner { node: node(7), place: place(2) };
        assert_eq!(claim(&store, Name::Bound, &owner(7), LATER_MS).await, None, "another place");
        let rules = ClaimRules { roles: vec![Role::Tester], ..ClaimRules::of(Slots::Unlimited) };
        let claimed = store.claim(&bound, LATER_MS, LEASE_MS, &rules).await.expect("claiming works");
        assert_eq!(claimed.expect("it has the right role").attempt.run, Name::Bound.id());

        assert_eq!(claim(&store, Name::Reserved, &owner(7), LATER_MS).await, None, "another process");
        let reserved = store.reserved_runs().await.expect("they can be read");
        assert_eq!(reserved.iter().map(|one| &one.claimable_by).collect::<Vec<_>>(), [&node(9)]);
        let taken = store.claim_for_recovery(&Name::Reserved.id(), &owner(7), LATER_MS, LEASE_MS).await;
        let taken = taken.expect("claiming works").expect("its process is dead");
        assert_eq!(finish(&store, &taken, &lost()).await, RunState::Failed);

        assert_eq!(claim(&store, Name::Retried, &owner(7), DUE_MS - 1).await, None, "it is not due");
        let second = claim(&store, Name::Retried, &owner(7), DUE_MS).await.expect("it is due");
        assert_eq!(second.attempt.number, 2);

        assert_eq!(claim(&store, Name::InLane, &owner(7), LATER_MS).await, None, "its lane is taken");
        let first = adopt(&store, Name::HoldsLane, 1).await;
        assert_eq!(finish(&store, &first, &Outcome::Succeeded).await, RunState::Succeeded);
        assert!(claim(&store, Name::InLane, &owner(7), LATER_MS).await.is_some());

        assert!(store.is_behind(&Name::SecondMessage.id()).await.expect("it is known"));
        assert_eq!(claim(&store, Name::SecondMessage, &owner(7), LATER_MS).await, None, "an earlier one waits");
        let first = claim(&store, Name::FirstMessage, &owner(7), LATER_MS).await.expect("it is the first");
        assert_eq!(finish(&store, &first, &Outcome::Succeeded).await, RunState::Succeeded);
        assert!(claim(&store, Name::SecondMessage, &owner(7), LATER_MS).await.is_some());

        // What is left goes out by age.
        let rules = ClaimRules { roles: vec![Role::Worker], ..ClaimRules::of(Slots::Unlimited) };
        for name in [Name::Queued, Name::Waiting, Name::Keyed] {
            let claimed = store.claim(&owner(7), LATER_MS, LEASE_MS, &rules).await.expect("claiming works");
            let claimed = claimed.expect("it is claimable");
            assert_eq!(claimed.attempt.run, name.id());
            let stored = store.append(&claimed.lease, &[line(1)]).await.expect("it is stored");
            assert_eq!(stored.iter().map(|event| event.seq).collect::<Vec<_>>(), [3]);
            assert_eq!(finish(&store, &claimed, &Outcome::Succeeded).await, RunState::Succeeded);
        }
        assert_eq!(store.claim(&owner(7), LATER_MS, LEASE_MS, &rules).await.expect("claiming works"), None);
        is_consistent(&store).await;
    }

    async fn what_was_accepted_under_a_key_is_not_accepted_again(store: Store) {
        let written = async |name: Name| store.run(&name.id()).await.expect("it is on record").request;
        let again = RunRequest { id: Name::Failed(90).id(), ..written(Name::Keyed).await };
        let by_system = mandate("system", Action::CreateRun, "again", LATER_MS);
        let answer = store.enqueue(&by_system, &again, Some(KEY)).await.expect("it is known");
        assert_eq!((answer.run, answer.created), (Name::Keyed.id(), false));
        let other = RunRequest { id: Name::Failed(90).id(), ..written(Name::Queued).await };
        let refused = store.enqueue(&by_system, &other, Some(KEY)).await.expect_err("it differs");
        assert!(matches!(refused, Error::IdempotencyMismatch { .. }), "{refused:?}");
        let same = store.enqueue(&by_system, &written(Name::Queued).await, None).await.expect("it is known");
        assert!(!same.created);
        assert_eq!(entries(&store).await.len(), 3, "nothing was changed");
        assert!(store.enqueue(&at(LATER_MS), &again, Some(KEY)).await.expect("it is new").created, "another owner's key");
    }

    async fn a_run_that_was_under_way_goes_on_and_ends(store: Store) {
        let claimed = adopt(&store, Name::Running, 1).await;
        assert_eq!((claimed.attempt.number, claimed.lease.token()), (1, 2));
        // The worker's output is read again from its beginning.
        let stored = store.append(&claimed.lease, &[1, 2, 3, 4].map(line)).await.expect("they are stored");
        assert_eq!(stored.iter().map(|event| event.seq).collect::<Vec<_>>(), [17], "what was there is not stored twice");
        let waiting = store.pending_messages(&claimed.lease).await.expect("they can be read");
        assert_eq!(waiting.iter().map(|one| one.content.as_str()).collect::<Vec<_>>(), ["and document it ☃"]);
        let delivered = Receipt::Delivered { taken_as: None };
        let told = store.mark_message(&claimed.lease, waiting[0].id, &delivered, LATER_MS).await;
        assert_eq!(told.expect("it is stored").map(|event| event.seq), Some(18));
        let run = Name::Running.id();
        let next = store.add_message(&at(LATER_MS), &run, MessageKind::Steer, "one more").await.expect("accepted");
        let all = store.messages_page(&run, 0, 500).await.expect("they can be read").rows;
        assert!(all.iter().all(|one| one.message.id <= next) && all.len() == 4, "{all:?}");
        let trouble = store.last_trouble(&claimed.attempt).await.expect("it is known");
        assert!(trouble.is_none_or(|trouble| trouble.kind == TroubleKind::Quota));
        let call = store.begin_call(&claimed.attempt, "model-2", &spent(7, 7), LATER_MS).await.expect("it is open");
        store.end_call(&claimed.attempt, call, &spent(1, 1), None, &[], LATER_MS).await.expect("it ends");
        assert_eq!(store.spent(&run).await.expect("it is known"), Spent { cost_micro_usd: 111, tokens: 68, calls: 4 });
        let left = Left { artifacts: artifacts(), ..Left::default() };
        let after = store.finish(&claimed.lease, &Outcome::Succeeded, &left, LATER_MS).await.expect("it ends");
        assert_eq!(after.state, RunState::Succeeded);
        assert_eq!(store.artifacts(&run).await.expect("they can be read").len(), 2);
        assert_eq!(event_types(&store, &run).await.last().copied(), Some("run.finished"));
        is_consistent(&store).await;
    }

    async fn a_run_whose_lease_is_over_is_taken_and_tried_again(store: Store) {
        let now_ms = NOW_MS + 31 + SHORT_LEASE_MS;
        let expired = store.expired(now_ms).await.expect("they can be read");
        assert_eq!(expired.iter().map(|live| &live.attempt.run).collect::<Vec<_>>(), [&Name::Expired.id()]);
        let live = &expired[0];
        assert_eq!((&live.node, live.place.as_ref(), live.token), (&node(2), Some(&place(1)), 2));
        let stale = store.adopt_for_recovery(&live.attempt.run, 1, &owner(7), now_ms, LEASE_MS).await;
        assert_eq!(stale.expect("it can be asked"), None, "an older token takes nothing");
        let taken = store.adopt_for_recovery(&live.attempt.run, live.token, &owner(7), now_ms, LEASE_MS).await;
        let taken = taken.expect("it can be asked").expect("nobody else is there");
        let after = store.schedule_retry(&taken.lease, &lost(), now_ms, &Left::default(), now_ms).await;
        assert_eq!(after.expect("it is queued again").state, RunState::Queued);
        let second = claim(&store, Name::Expired, &owner(7), now_ms).await.expect("it is due");
        assert_eq!(second.attempt.number, 2);
        assert_eq!(finish(&store, &second, &failure(0)).await, RunState::Failed);
        let late = store.append(&taken.lease, &[line(9)]).await.expect_err("it has ended");
        assert!(matches!(late, Error::AlreadyFinal { .. } | Error::StaleLease { .. }), "{late:?}");
        is_consistent(&store).await;
    }

    async fn a_run_that_was_to_end_is_cancelled(store: Store) {
        let claimed = adopt(&store, Name::Cancelling, 1).await;
        assert!(store.cancel_requested(&Name::Cancelling.id()).await.expect("it is known"));
        // Whatever another attempt would bring: somebody has asked for its end.
        let after = store.schedule_retry(&claimed.lease, &lost(), LATER_MS, &Left::default(), LATER_MS).await;
        assert_eq!(after.expect("it ends").state, RunState::Cancelled);
        is_consistent(&store).await;
    }

    async fn a_dead_letter_is_replayed_and_forgotten(store: Store) {
        let letter = Name::DeadLetter.id();
        let replay = RunRequest { id: Name::Failed(91).id(), ..Name::Replay.request() };
        store.enqueue(&at(LATER_MS), &replay, None).await.expect("accepted");
        let kept = store.letter(&letter).await.expect("it can be read").expect("it is one");
        assert_eq!(kept.replay, Some(Replay { run: replay.id.clone(), owner: OwnerName::local(), state: RunState::Queued }));
        let claimed = claim(&store, Name::Failed(91), &owner(7), LATER_MS).await.expect("it is claimable");
        assert_eq!(finish(&store, &claimed, &Outcome::Succeeded).await, RunState::Succeeded);
        assert!(store.remove_letter(&at(LATER_MS), &letter).await.expect("it can be forgotten"));
        assert_eq!(store.run(&letter).await.expect("its run stays").letter, Letter::None);
        is_consistent(&store).await;
    }

    async fn what_was_kept_long_enough_is_forgotten(store: Store) {
        store.remove_run(&at(LATER_MS), &Name::TimedOut.id()).await.expect("it has ended");
        let refused = store.remove_run(&at(LATER_MS), &Name::Running.id()).await.expect_err("it is under way");
        assert!(matches!(refused, Error::NotFinal { .. }), "{refused:?}");
        let retention = Retention { runs_before_ms: Some(LATER_MS), ..Retention::default() };
        let mut forgotten = Vec::new();
        loop {
            let expired = store.expire(&retention).await.expect("it can be forgotten");
            if expired.runs.is_empty() && expired.artifacts.is_empty() {
                break;
            }
            forgotten.extend(expired.artifacts);
        }
        let written: Vec<ArtifactPlace> = artifacts().into_iter().map(|one| one.place).collect();
        assert_eq!(forgotten, written, "the caller is told which files go with it");
        let left = store.list_runs(&RunFilter::newest(u32::MAX)).await.expect("they can be listed");
        let stays = |record: &cofferdam_store::RunRecord| !record.state.is_final() || record.letter == Letter::Dead;
        assert!(left.iter().all(stays), "{left:?}");
        assert_eq!(left.len(), expected().iter().filter(|(_, state, _, _, letter)| !state.is_final() || *letter == Letter::Dead).count());
        is_consistent(&store).await;
    }

    async fn what_is_around_the_runs_goes_on(store: Store) {
        let cancel = mandate("ci", Action::CancelRun, Name::Queued.id().as_str(), LATER_MS);
        store.record_refusal(&cancel).await.expect("it is counted");
        store.record_refusal(&cancel).await.expect("it is counted");
        store.request_cancel(&cancel, &Name::Queued.id()).await.expect("it is queued");
        let changes = entries(&store).await;
        let told: Vec<_> = changes[3..].iter().map(|one| (one.action.as_str(), one.outcome, one.count)).collect();
        assert_eq!(told, [("run.cancel", AuditOutcome::Refused, 2), ("run.cancel", AuditOutcome::Done, 1)]);
        let numbers: Vec<u64> = changes.iter().map(|one| one.seq).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        let project = store.find_project("acme/shop").await.expect("it can be read").expect("it is one");
        assert_eq!(project.id, ProjectId::new(NOW_MS, 1));
        assert!(!store.create_project(&at(LATER_MS), &project).await.expect("it is known"), "it is there already");
        assert!(store.remove_project(&at(LATER_MS), &project.id).await.expect("it can be forgotten"));
        assert!(store.revoke_key(&at(LATER_MS), &KeyId::new(NOW_MS, 1)).await.expect("it is one"));
        store.remove_node(&node(3)).await.expect("it can be forgotten");
        assert_eq!(store.nodes().await.expect("they can be read").len(), 2);
        assert_eq!(store.slots_in_use(LATER_MS).await.expect("it is known"), 4);
        let outcome = Outcome::failed(FailureClass::Agent, "it said no");
        let claimed = adopt(&store, Name::HoldsLane, 1).await;
        assert_eq!(finish(&store, &claimed, &outcome).await, RunState::Failed);
        is_consistent(&store).await;
    }
}
