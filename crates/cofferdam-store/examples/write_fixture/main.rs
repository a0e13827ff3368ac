//! Writes a record with runs in every state, through the store alone: `cargo run -p cofferdam-store --example
//! write_fixture -- FILE`, or an address of an empty PostgreSQL database in place of the file. What it wrote once is kept in
//! `tests/fixtures/`, so that later programs show that they go on with it.

mod runs;

use std::error::Error;
use std::num::NonZeroU32;

use cofferdam_core::{
    Action, Actor, EventType, KeyId, MessageKind, Mode, ModelTrouble, NewEvent, Outcome, OwnerName, Project,
    ProjectId, Role, Scope, Scopes, Source, TroubleKind,
};
use cofferdam_mandate::issue;
use cofferdam_store::{
    ClaimRules, Claimed, Lease, Left, Mandate, ModeReport, NewKey, NodeHealth, NodeRecord, NodeReport,
    PostgresOptions, Receipt, Retention, Slots, Store,
};
use serde_json::json;

use runs::{
    DUE_MS, EVENT_TYPES, FAILURES, KEY, LEASE_MS, NOW_MS, Name, SAID, SHORT_LEASE_MS, artifacts, failure,
    has_letter, letter, lost, node, owner, place, seal, spent,
};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

type Done = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done {
    let Some(to) = std::env::args().nth(1) else {
        return Err("type the name of a new file or an address".into());
    };
    if to.contains("://") {
        let store = Store::open_postgres(&PostgresOptions::at(to.parse()?)).await?;
        write(&store).await?;
        store.close().await;
    } else {
        let store = Store::open_sqlite(to.as_ref()).await?;
        write(&store).await?;
        store.close().await;
        let file = rusqlite::Connection::open(&to)?;
        file.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")?;
    }
    Ok(())
}

async fn write(store: &Store) -> Done {
    forgotten(store).await?;
    under_way(store).await?;
    queued(store).await?;
    ended(store).await?;
    failed(store).await?;
    around(store).await?;
    let examined = store.check().await?;
    match examined.problems.is_empty() {
        true => Ok(()),
        false => Err(format!("{examined:?}").into()),
    }
}

/// What somebody at the command line may do at this time.
fn at(now_ms: u64) -> Mandate {
    issue(&Actor::LocalUser, Action::CreateRun, "", json!({}), now_ms)
}

async fn claim(store: &Store, name: Name, lease_ms: u64) -> Result<Claimed, Box<dyn Error>> {
    store.enqueue(&at(NOW_MS), &name.request(), None).await?;
    again(store, name, NOW_MS, lease_ms).await
}

async fn again(store: &Store, name: Name, now_ms: u64, lease_ms: u64) -> Result<Claimed, Box<dyn Error>> {
    let claimed =
        store.claim_run(&name.id(), &owner(1), now_ms, lease_ms, &ClaimRules::of(Slots::Unlimited)).await?;
    claimed.ok_or_else(|| format!("{name:?} cannot be claimed").into())
}

/// Lines of a worker's output.
async fn print(store: &Store, lease: &Lease, count: u64) -> Done {
    let lines: Vec<NewEvent> = (1..=count)
        .map(|number| NewEvent {
            at_ms: NOW_MS + number,
            event_type: EventType::AgentMessage,
            worker_seq: Some(number),
            data: json!({ "text": format!("line {number}") }),
        })
        .collect();
    store.append(lease, &lines).await?;
    Ok(())
}

async fn forgotten(store: &Store) -> Done {
    let then_ms = NOW_MS - 30 * DAY_MS;
    store.enqueue(&at(then_ms), &Name::Forgotten.request(), None).await?;
    let claimed = again(store, Name::Forgotten, then_ms, LEASE_MS).await?;
    print(store, &claimed.lease, 5).await?;
    store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), then_ms + 1).await?;
    store.expire(&Retention { events_before_ms: Some(NOW_MS - DAY_MS), ..Retention::default() }).await?;
    Ok(())
}

async fn under_way(store: &Store) -> Done {
    let running = claim(store, Name::Running, LEASE_MS).await?;
    let (lease, attempt, run) = (&running.lease, &running.attempt, Name::Running.id());
    let sealed = NewEvent::new(NOW_MS, EventType::SandboxSealed, json!({ "mode": "host" }));
    store.record_seal(lease, &seal(), &[sealed]).await?;
    print(store, lease, 3).await?;
    let steer =
        store.add_message(&at(NOW_MS + 10), &run, MessageKind::Steer, "leave the tests alone").await?;
    let taken = Receipt::Delivered { taken_as: Some("follow_up".to_owned()) };
    store.mark_message(lease, steer, &taken, NOW_MS + 11).await?;
    let interrupt = store.add_message(&at(NOW_MS + 12), &run, MessageKind::Interrupt, "stop").await?;
    let refused = Receipt::Refused { reason: "unsupported".to_owned() };
    store.mark_message(lease, interrupt, &refused, NOW_MS + 13).await?;
    store.add_message(&at(NOW_MS + 14), &run, MessageKind::FollowUp, "and document it ☃").await?;
    let reached = NewEvent::new(NOW_MS + 15, EventType::EgressRefused, json!({ "host": "example.com:443" }));
    store.record_egress(attempt, &[reached]).await?;
    store.allow(&at(NOW_MS + 16), &run, &"registry.example:443".parse()?).await?;
    store.allow(&at(NOW_MS + 17), &run, &"*.crates.example:443".parse()?).await?;
    let quota = ModelTrouble {
        kind: TroubleKind::Quota,
        message: "too many requests".to_owned(),
        status: Some(429),
        retry_after_ms: Some(2_000),
    };
    let first = store.begin_call(attempt, "model-1", &spent(900, 500), NOW_MS + 20).await?;
    let usage = NewEvent::new(NOW_MS + 21, EventType::ModelUsage, json!({ "output_tokens": 7 }));
    store.end_call(attempt, first, &spent(10, 7), None, &[usage], NOW_MS + 21).await?;
    let second = store.begin_call(attempt, "model-1", &spent(40, 30), NOW_MS + 22).await?;
    store.end_call(attempt, second, &spent(0, 0), Some(&quota), &[], NOW_MS + 23).await?;
    store.begin_call(attempt, "model-2", &spent(100, 60), NOW_MS + 24).await?;

    claim(store, Name::HoldsLane, LEASE_MS).await?;
    let expired = claim(store, Name::Expired, SHORT_LEASE_MS).await?;
    print(store, &expired.lease, 2).await?;
    let (run, token, new_owner) = (Name::Expired.id(), expired.lease.token(), owner(2));
    let taken = store.adopt_for_recovery(&run, token, &new_owner, NOW_MS + 30, SHORT_LEASE_MS).await?;
    taken.ok_or("nobody else is there")?;
    claim(store, Name::Cancelling, LEASE_MS).await?;
    store.request_cancel(&at(NOW_MS + 40), &Name::Cancelling.id()).await?;
    Ok(())
}

async fn queued(store: &Store) -> Done {
    for name in [Name::Queued, Name::Bound, Name::Reserved, Name::Waiting, Name::InLane] {
        store.enqueue(&at(NOW_MS + 100), &name.request(), None).await?;
    }
    store.enqueue(&at(NOW_MS + 101), &Name::Keyed.request(), Some(KEY)).await?;
    // In the order in which they were accepted, whatever the clock or their ids say.
    store.enqueue(&at(NOW_MS + 103), &Name::FirstMessage.request(), None).await?;
    store.enqueue(&at(NOW_MS + 102), &Name::SecondMessage.request(), None).await?;
    let one = ClaimRules::of(Slots::AtMost(NonZeroU32::MIN));
    let waits = store.claim_run(&Name::Waiting.id(), &owner(1), NOW_MS + 104, LEASE_MS, &one).await?;
    let tried = claim(store, Name::Retried, LEASE_MS).await?;
    print(store, &tried.lease, 1).await?;
    store.schedule_retry(&tried.lease, &lost(), DUE_MS, &Left::default(), NOW_MS + 105).await?;
    match waits {
        None => Ok(()),
        Some(_) => Err("a slot was free".into()),
    }
}

async fn ended(store: &Store) -> Done {
    let claimed = claim(store, Name::Succeeded, LEASE_MS).await?;
    store.record_seal(&claimed.lease, &seal(), &[]).await?;
    print(store, &claimed.lease, 2).await?;
    let left = Left { artifacts: artifacts(), ..Left::default() };
    store.finish(&claimed.lease, &Outcome::Succeeded, &left, NOW_MS + 200).await?;
    let gone = NewEvent::new(NOW_MS + 201, EventType::SandboxDestroyed, json!({}));
    store.append(&claimed.lease, &[gone]).await?;

    store.enqueue(&at(NOW_MS), &Name::CancelledQueued.request(), None).await?;
    store.request_cancel(&at(NOW_MS + 210), &Name::CancelledQueued.id()).await?;
    let claimed = claim(store, Name::CancelledRunning, LEASE_MS).await?;
    store
        .add_message(&at(NOW_MS + 211), &Name::CancelledRunning.id(), MessageKind::FollowUp, "too late")
        .await?;
    store.request_cancel(&at(NOW_MS + 212), &Name::CancelledRunning.id()).await?;
    store.finish(&claimed.lease, &Outcome::Cancelled, &Left::default(), NOW_MS + 213).await?;
    let claimed = claim(store, Name::TimedOut, LEASE_MS).await?;
    let out_of_time = Outcome::TimedOut { timeout_ms: 600_000 };
    store.finish(&claimed.lease, &out_of_time, &Left::default(), NOW_MS + 220).await?;

    let first = claim(store, Name::DeadLetter, LEASE_MS).await?;
    store.schedule_retry(&first.lease, &lost(), NOW_MS + 231, &Left::default(), NOW_MS + 230).await?;
    let second = again(store, Name::DeadLetter, NOW_MS + 231, LEASE_MS).await?;
    let dead = letter(Name::DeadLetter, cofferdam_core::ErrorClass::Transient);
    let left = Left { letter: Some(dead), ..Left::default() };
    store.finish(&second.lease, &lost(), &left, NOW_MS + 232).await?;
    let replay = claim(store, Name::Replay, LEASE_MS).await?;
    store.finish(&replay.lease, &Outcome::Succeeded, &Left::default(), NOW_MS + 233).await?;

    let claimed = claim(store, Name::OverBudget, LEASE_MS).await?;
    store.begin_call(&claimed.attempt, "model-1", &spent(5_000_000, 10), NOW_MS + 240).await?;
    store.exceed_budget(&claimed.attempt, "cost", NOW_MS + 241).await?;
    let outcome = Outcome::failed(cofferdam_core::FailureClass::Budget, "the run spent its budget");
    store.finish(&claimed.lease, &outcome, &Left::default(), NOW_MS + 242).await?;

    let claimed = claim(store, Name::Talkative, LEASE_MS).await?;
    let events: Vec<NewEvent> = EVENT_TYPES
        .iter()
        .filter_map(|name| EventType::parse(name))
        .map(|event_type| NewEvent::new(NOW_MS + 250, event_type, json!({ "text": SAID, "big": u64::MAX })))
        .collect();
    store.append(&claimed.lease, &events).await?;
    store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), NOW_MS + 251).await?;
    Ok(())
}

async fn failed(store: &Store) -> Done {
    for (number, (_, error_class)) in FAILURES.into_iter().enumerate() {
        let name = Name::Failed(number);
        let claimed = claim(store, name, LEASE_MS).await?;
        let left = Left { letter: has_letter(number).then(|| letter(name, error_class)), ..Left::default() };
        store.finish(&claimed.lease, &failure(number), &left, NOW_MS + 300 + number as u64).await?;
    }
    Ok(())
}

/// Nodes, projects, keys, and who changed what.
async fn around(store: &Store) -> Done {
    let health = [
        NodeHealth::Ready,
        NodeHealth::Draining,
        NodeHealth::Resting { reason: "no engine".to_owned(), until_ms: NOW_MS + 30_000 },
    ];
    for (health, number) in health.into_iter().zip(1..) {
        let report = NodeReport {
            name: format!("n{number}"),
            host: "builder".to_owned(),
            version: "0.1.0".to_owned(),
            roles: vec![Role::Worker, Role::Tester],
            capacity: 4,
            running: 1,
            health,
            modes: vec![
                ModeReport { mode: Mode::Native, missing: None },
                ModeReport { mode: Mode::Docker, missing: Some("no engine answers".to_owned()) },
            ],
        };
        let record = NodeRecord {
            id: node(number),
            place: place(number),
            started_at_ms: NOW_MS - 1_000,
            seen_at_ms: NOW_MS,
            report,
        };
        store.report_node(&record).await?;
    }
    for (number, name, max_concurrency) in [(1, "acme/shop", NonZeroU32::new(3)), (2, "acme/bar", None)] {
        let project = Project {
            id: ProjectId::new(NOW_MS, number),
            name: name.parse()?,
            source: Source::Local { path: "/srv/shop".into() },
            max_concurrency,
        };
        store.create_project(&at(NOW_MS), &project).await?;
    }
    let scopes: Scopes = [Scope::Read, Scope::Run].into_iter().collect();
    for (number, name) in [(1, "first"), (2, "revoked")] {
        let key = NewKey {
            id: KeyId::new(NOW_MS, number),
            name: name.to_owned(),
            owner: OwnerName::system(),
            sha256: format!("{number}{number}").repeat(32),
            scopes: scopes.clone(),
        };
        store.create_key(&at(NOW_MS + number as u64), &key).await?;
    }
    store.use_key(&KeyId::new(NOW_MS, 1), NOW_MS + 60_000).await?;
    store.revoke_key(&at(NOW_MS + 70_000), &KeyId::new(NOW_MS, 2)).await?;
    for number in 1..=3 {
        store.record_refusal(&at(NOW_MS + number)).await?;
    }
    Ok(())
}
