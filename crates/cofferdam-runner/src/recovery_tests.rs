//! Nodes of several places on one record: two state folders that share a database file.

use std::path::Path;
use std::sync::Arc;

use cofferdam_core::{Action, Actor, NodeId, Policy, RetryPolicy, RunRequest, RunState, Source, Work};
use cofferdam_mandate::issue;
use cofferdam_sandbox::{Attachment, Caller, Options, Tools};
use cofferdam_store::{ClaimRules, Owner, Store};

use super::*;
use crate::egress::BrokerAccess;
use crate::home::Home;
use crate::model_choice::NoModel;
use crate::node::{CallerPaths, NodeOptions};

/// Long enough ago that a lease of then has run out, and the grace as well.
const LONG_AGO_MS: u64 = LEASE_MS + GRACE_MS + 1_000;

struct Places {
    folder: tempfile::TempDir,
    store: Store,
}

impl Places {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_sqlite(&folder.path().join("shared.db")).await.unwrap();
        Self { folder, store }
    }

    /// A node in a state folder of its own.
    fn node(&self, number: u128) -> Node {
        node_in(&self.folder.path().join(number.to_string()), number, &self.store)
    }

    /// A run that a node of yet another place took so long ago.
    async fn taken(&self, ago_ms: u64, change: impl FnOnce(&mut RunRequest)) -> RunId {
        let owner = Owner { node: NodeId::new(1, 99), place: PlaceId::new(1, 99) };
        let run = RunId::new(now_ms(), 5);
        let mut request = RunRequest {
            retry: RetryPolicy { max_attempts: 2, ..RetryPolicy::default() },
            ..RunRequest::new(
                run.clone(),
                Source::Empty,
                Work::Program { argv: vec!["true".to_owned()] },
                Policy::default(),
            )
        };
        change(&mut request);
        let then = now_ms() - ago_ms;
        let mandate = issue(&Actor::LocalUser, Action::CreateRun, run.as_str(), serde_json::json!({}), then);
        self.store.enqueue(&mandate, &request, None).await.unwrap();
        let claimed =
            self.store.claim_run(&run, &owner, then, LEASE_MS, &ClaimRules::default()).await.unwrap();
        assert!(claimed.is_some());
        run
    }
}

fn node_in(folder: &Path, number: u128, store: &Store) -> Node {
    Node::register(NodeOptions {
        id: NodeId::new(1, number),
        home: Home::open(folder).unwrap(),
        artifacts: cofferdam_store::ArtifactStore::Folder,
        store: store.clone(),
        backends: Vec::new(),
        attachment: Attachment::Detached,
        env: Arc::new(|_| None),
        caller: CallerPaths::default(),
        broker: BrokerAccess::Beside,
        git: Arc::new(|_| None),
        dialer: cofferdam_net::Dialer::new(&[], std::time::Duration::from_secs(1)),
        tools: Tools::new(Options::new(folder.into(), "/nowhere".into(), Caller::default())),
        models: Arc::new(|_| Err(NoModel { message: "none".to_owned(), hint: String::new() })),
        tool_settings: cofferdam_core::ToolSettings::default(),
        redactor: cofferdam_core::Redactor::default(),
        rules: ClaimRules::default(),
        #[cfg(feature = "failpoints")]
        without: Vec::new(),
    })
    .unwrap()
}

async fn found(node: &Node, is_steady: bool) -> Vec<Orphan> {
    orphans(node, &node.store, now_ms(), is_steady).await.unwrap()
}

#[tokio::test]
async fn a_run_of_another_place_is_left_alone_until_its_lease_and_a_grace_are_over() {
    let places = Places::new().await;
    let here = places.node(1);
    places.taken(LEASE_MS + 1_000, |_| {}).await;
    assert!(found(&here, true).await.is_empty(), "its node may be about to renew");
}

#[tokio::test]
async fn a_run_of_another_place_is_taken_only_by_a_node_with_steady_contact() {
    let places = Places::new().await;
    let here = places.node(1);
    let run = places.taken(LONG_AGO_MS, |_| {}).await;
    assert!(found(&here, false).await.is_empty());
    let orphans = found(&here, true).await;
    assert!(matches!(&orphans[..], [Orphan::Elsewhere(live)] if live.attempt.run == run), "{orphans:?}");
}

#[tokio::test]
async fn of_two_nodes_that_take_a_run_one_has_it() {
    let places = Places::new().await;
    let (first, second) = (places.node(1), places.node(2));
    places.taken(LONG_AGO_MS, |_| {}).await;
    let [orphan] = &found(&first, true).await[..] else { panic!("one run") };
    assert!(adopt(&first, &first.store, orphan).await.unwrap().is_some());
    assert!(adopt(&second, &second.store, orphan).await.unwrap().is_none());
}

#[tokio::test]
async fn a_run_that_was_lost_elsewhere_is_tried_again() {
    let places = Places::new().await;
    let here = places.node(1);
    let run = places.taken(LONG_AGO_MS, |_| {}).await;
    let [orphan] = &found(&here, true).await[..] else { panic!("one run") };
    let claimed = adopt(&here, &here.store, orphan).await.unwrap().unwrap();
    execute_unwatched(&here, claimed, Entry::Lost, Retries::AsAsked).await.unwrap();
    let record = places.store.run(&run).await.unwrap();
    assert_eq!((record.state, record.attempts), (RunState::Queued, 1), "a second attempt waits for a node");
}

#[tokio::test]
async fn an_attached_run_that_was_lost_elsewhere_is_over() {
    let places = Places::new().await;
    let here = places.node(1);
    let run = places.taken(LONG_AGO_MS, |request| request.claimable_by = Some(NodeId::new(1, 99))).await;
    let [orphan] = &found(&here, true).await[..] else { panic!("one run") };
    let claimed = adopt(&here, &here.store, orphan).await.unwrap().unwrap();
    execute_unwatched(&here, claimed, Entry::Lost, Retries::Never).await.unwrap();
    assert_eq!(places.store.run(&run).await.unwrap().state, RunState::Failed);
}

#[tokio::test]
async fn a_sweep_ends_no_attached_run_of_another_place() {
    let places = Places::new().await;
    let here = places.node(1);
    let run = places.taken(LONG_AGO_MS, |request| request.claimable_by = Some(NodeId::new(1, 99))).await;
    assert!(sweep(&here).await.unwrap().finished.is_empty());
    assert_eq!(places.store.run(&run).await.unwrap().state, RunState::Running);
}

#[tokio::test]
async fn a_node_takes_up_its_own_runs_at_once() {
    let places = Places::new().await;
    let folder = places.folder.path().join("1");
    let owner = places.node(1).owner();
    places.taken(0, |_| {}).await;
    let live = places.store.live_runs().await.unwrap();
    let (run, token) = (&live[0].attempt.run, live[0].token);
    places.store.adopt_for_recovery(run, token, &owner, now_ms(), LEASE_MS).await.unwrap().unwrap();
    let again = node_in(&folder, 1, &places.store);
    let orphans = found(&again, false).await;
    assert!(matches!(&orphans[..], [Orphan::Here(live)] if live.attempt.run == *run), "{orphans:?}");
}
