//! What an attempt was allowed to see is in nothing that its broker writes, and is kept no longer than the attempt.

use std::fs;

use cofferdam_broker::{
    Bounds, Broker, GitCredential, GitRepository, Grant, Locked, NoGitCredential, Options, PriceTable,
    Secrets, Upstream, connect,
};
use cofferdam_core::{
    Action, Actor, Agent, EventType, ModelTrouble, NodeId, PlaceId, Policy, RunRequest, SandboxId, Source,
    TroubleKind, Vendor, Work, gateway,
};
use cofferdam_mandate::issue;
use cofferdam_store::{ClaimRules, Owner};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// What the agent was allowed to see.
const SECRET: &str = "hunter2-of-the-attempt";

struct Place {
    folder: tempfile::TempDir,
    ledger: StoreLedger,
    attempt: AttemptRef,
}

/// An attempt that is under way, with a secret of its own.
async fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::open(&folder.path().join("home")).unwrap();
    let store = Store::open_sqlite(&folder.path().join("record.db")).await.unwrap();
    let request = RunRequest::new(
        RunId::new(now_ms(), 5),
        Source::Empty,
        Work::Program { argv: vec!["true".to_owned()] },
        Policy::default(),
    );
    let mandate = issue(&Actor::LocalUser, Action::CreateRun, request.id.as_str(), json!({}), now_ms());
    store.enqueue(&mandate, &request, None).await.unwrap();
    let owner = Owner { node: NodeId::new(1, 1), place: PlaceId::new(1, 1) };
    let claimed = store.claim(&owner, now_ms(), 60_000, &ClaimRules::default()).await.unwrap();
    let attempt = claimed.expect("nobody else is there").attempt;
    let own = home.workspaces().join(SandboxId::of(&attempt).to_string());
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("allowed.json"), json!([SECRET]).to_string()).unwrap();
    Place { folder, ledger: StoreLedger::new(store, home, Redactor::default()), attempt }
}

fn begun() -> CallBegun {
    CallBegun { at_ms: now_ms(), model: "m".to_owned(), reserved: Spent { calls: 1, ..Spent::default() } }
}

fn ended(message: &str) -> CallEnded {
    let trouble = ModelTrouble {
        kind: TroubleKind::Rejected,
        message: message.to_owned(),
        status: Some(400),
        retry_after_ms: None,
    };
    CallEnded { spent: Spent { calls: 1, ..Spent::default() }, trouble: Some(trouble), events: Vec::new() }
}

/// The attack: an agent says a secret that it was allowed to see to the model, whose server repeats it in its error.
#[tokio::test]
async fn the_message_of_a_trouble_has_no_secret_of_the_attempt() {
    let Place { folder: _folder, ledger, attempt } = place().await;
    let call = ledger.begin_call(&attempt, begun()).await.unwrap();
    ledger.end_call(&attempt, call, ended(&format!("no such model: {SECRET}"))).await.unwrap();
    let trouble = ledger.store.last_trouble(&attempt).await.unwrap().expect("the call failed");
    assert_eq!(trouble.message, "no such model: [redacted]");
}

struct Nothing;

impl Secrets for Nothing {
    fn upstream(&self, _: Vendor, _: Option<Agent>) -> Result<Upstream, Locked> {
        Err(Locked::NoKey)
    }

    fn git(&self, _: &GitRepository<'_>) -> Result<GitCredential, NoGitCredential> {
        Err(NoGitCredential::NoToken)
    }
}

#[tokio::test]
async fn what_is_known_of_an_attempt_is_forgotten_when_the_broker_has_closed_it() {
    let Place { folder, ledger, attempt } = place().await;
    let options = Options {
        secrets: Arc::new(Nothing),
        name_servers: Vec::new(),
        prices: PriceTable::default(),
        bounds: Bounds::default(),
    };
    let broker = Broker::new(options, Arc::new(ledger.clone()));
    let sockets = folder.path().join("sockets");
    fs::create_dir(&sockets).unwrap();
    let grant = Grant {
        attempt: attempt.clone(),
        folder: sockets.clone(),
        proxy: Some(Vec::new()),
        forwards: Vec::new(),
        model: None,
        git: None,
    };
    broker.open(grant).await.unwrap();
    let mut connection = connect(&sockets, gateway::SOCKET).await.unwrap();
    let asked = format!("CONNECT {SECRET}.example:443 HTTP/1.1\r\nHost: {SECRET}.example:443\r\n\r\n");
    connection.write_all(asked.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    connection.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 403");
    broker.close(&attempt).await;
    let events = ledger.store.events_after(&attempt.run, 0, 100).await.unwrap();
    let refused =
        events.iter().find(|event| event.event_type == EventType::EgressRefused).expect("it is told");
    assert!(!refused.data.to_string().contains(SECRET), "{}", refused.data);
    assert_eq!(ledger.of_attempts.lock().unwrap().len(), 0, "its secrets are still in memory");
}

#[tokio::test]
async fn a_call_that_ends_after_its_attempt_is_redacted_though_the_workspace_is_gone() {
    let Place { folder, ledger, attempt } = place().await;
    ledger.opened(&attempt);
    let late = ledger.begin_call(&attempt, begun()).await.unwrap();
    ledger.closed(&attempt);
    fs::remove_dir_all(folder.path().join("home/workspaces")).unwrap();
    ledger.end_call(&attempt, late, ended(SECRET)).await.unwrap();
    let trouble = ledger.store.last_trouble(&attempt).await.unwrap().expect("the call failed");
    assert_eq!(trouble.message, "[redacted]");
    assert_eq!(ledger.of_attempts.lock().unwrap().len(), 0);
}
