//! A process that is killed right after a durable write has written it.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use cofferdam_core::{KeyId, Outcome, Project, ProjectId, RunState, Scopes, Source};
use cofferdam_store::{MessageKind, NewAudit, NewKey, Receipt, Retention, Store};

use crate::fixture::{Fixture, LEASE_MS, event_types, left, line, node, owner, request, rules};

const DATABASE: &str = "COFFERDAM_TEST_DATABASE";
const SIGKILL: i32 = 9;

/// The process that is killed: this test, started again with a failpoint armed.
#[tokio::test]
async fn victim() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let store = Store::open_sqlite(path.as_ref()).await.unwrap();
    store.enqueue(&request(1), None, 1_000).await.unwrap();
    let claimed = store
        .claim(&owner(1), 1_000, LEASE_MS, &rules(cofferdam_store::Slots::Unlimited))
        .await
        .unwrap()
        .unwrap();
    for number in 1..=5 {
        store.append(&claimed.lease, &[line(number)]).await.unwrap();
    }
    let run = &claimed.attempt.run;
    let message = store.add_message(run, MessageKind::Steer, "left", 1_500).await.unwrap();
    store.mark_message(&claimed.lease, message, &Receipt::Delivered { taken_as: None }, 1_600).await.unwrap();
    store.allow(run, &"host.example:443".parse().unwrap(), 1_700).await.unwrap();
    store.create_project(&project(), 1_800).await.unwrap();
    store.remove_project(&project().id).await.unwrap();
    store.create_key(&key(), 1_900).await.unwrap();
    store.revoke_key(&key().id, 2_000).await.unwrap();
    store.record_audit(&change()).await.unwrap();
    store.finish(&claimed.lease, &Outcome::Succeeded, &left(&[]), 2_100).await.unwrap();
    store.expire(&Retention { runs_before_ms: Some(3_000), ..Retention::default() }).await.unwrap();
    panic!("the failpoint did not kill this process");
}

fn project() -> Project {
    let name = "shop".parse().expect("a plain name");
    Project { id: ProjectId::new(1, 1), name, source: Source::Empty, max_concurrency: None }
}

fn key() -> NewKey {
    let (name, sha256) = ("ci".to_owned(), "aa".to_owned());
    NewKey { id: KeyId::new(1, 1), name, sha256, scopes: Scopes::all() }
}

fn change() -> NewAudit {
    NewAudit {
        at_ms: 2_050,
        actor: "a test".to_owned(),
        action: "key.revoke".to_owned(),
        subject: key().id.to_string(),
        data: serde_json::json!({}),
    }
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
async fn a_message_whose_taker_is_killed_after_the_commit_waits() {
    let (_fixture, store) = killed_at("store.add_message").await;
    let adopted = store.adopt(&node(1), &request(1).id, 2_000, LEASE_MS).await.unwrap().unwrap();
    assert_eq!(store.pending_messages(&adopted.lease).await.unwrap().len(), 1);
    assert_eq!(event_types(&store, &request(1).id).await[7..], ["message.accepted", "run.adopted"]);
}

#[tokio::test]
async fn a_receipt_whose_writer_is_killed_after_the_commit_is_not_written_twice() {
    let (_fixture, store) = killed_at("store.mark_message").await;
    let adopted = store.adopt(&node(1), &request(1).id, 2_000, LEASE_MS).await.unwrap().unwrap();
    assert_eq!(store.pending_messages(&adopted.lease).await.unwrap(), []);
    let expected = ["message.accepted", "message.delivered", "run.adopted"];
    assert_eq!(event_types(&store, &request(1).id).await[7..], expected);
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
async fn a_change_whose_writer_is_killed_after_the_commit_is_on_record() {
    let (_fixture, store) = killed_at("store.record_audit").await;
    let changes = store.audit_before(u64::MAX, 10).await.unwrap();
    assert_eq!(changes.iter().map(|one| &one.change).collect::<Vec<_>>(), [&change()]);
}

#[tokio::test]
async fn what_was_forgotten_stays_so_when_its_remover_is_killed_after_the_commit() {
    let (_fixture, store) = killed_at("store.expire").await;
    assert!(store.run(&request(1).id).await.is_err());
}
