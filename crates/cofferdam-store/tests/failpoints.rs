//! A process that is killed right after a durable write has written it.
#![cfg(feature = "failpoints")]

#[expect(dead_code, reason = "the conformance suite uses the rest")]
mod fixture;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use cofferdam_core::RunState;
use cofferdam_store::{MessageKind, Receipt, Store};

use fixture::{Fixture, LEASE_MS, event_types, line, node, owner, request, rules};

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
    panic!("the failpoint did not kill this process");
}

async fn killed_at(failpoint: &str) -> (Fixture, Store) {
    let fixture = Fixture::sqlite();
    let status = Command::new(std::env::current_exe().expect("this test is a program"))
        .args(["--exact", "victim"])
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
