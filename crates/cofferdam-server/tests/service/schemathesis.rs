//! Schemathesis reads what `/openapi.json` says and tries every call with what it makes up: nothing may be answered in another
//! way than is described.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cofferdam_core::{EventType, FailureClass, NewEvent, NodeId, Outcome, PlaceId};
use cofferdam_server::KeyRule;
use cofferdam_store::{ClaimRules, Left, Owner, Store};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::fixture::{Place, Setup, http};

/// Names the program: `./dev test` installs it.
const PROGRAM: &str = "COFFERDAM_SCHEMATHESIS";

/// What a schema could not tell, and is no mistake of ours: that a repository is not there or its host does not answer, that no node
/// is there to ask, which values each key of the configuration takes, which models, tools and sets of hosts there are, which texts are
/// addresses of repositories, that a spec has no project, and what the output of a phase looks like. No other call may answer so.
const CONFIGURATION: &str = r#"
[[operations]]
include-name = "POST /execute"

[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 502]

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429, 502]

[[operations]]
include-path-regex = "^/execute/sdk"

[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 502]

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 422, 429, 502]

[[operations]]
include-name = "POST /api/v1/projects"

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429]

[[operations]]
include-name = "POST /api/v1/runs/{id}/allow"

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429]

[[operations]]
include-path-regex = "^/system/[a-z]+/auth$"

[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 503]

[[operations]]
include-path-regex = "^/api/v1/specs/[^/]+/(execute|approve|reject|phases/.*)$"

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429]

[[operations]]
include-name = "PATCH /config"

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429]
"#;

/// How Schemathesis comes to a service.
enum Caller {
    /// With a key that has every scope.
    WithKey,
    /// Without any, where everybody needs one.
    WithoutKey,
    /// Without any, where the operator lets callers of this machine in.
    OnLoopback,
}

/// Says what it has tried; `None` if it is not installed.
async fn schemathesis(place: &Place, caller: Caller) -> Option<String> {
    let Some(program) = std::env::var_os(PROGRAM) else {
        assert!(std::env::var_os("CI").is_none(), "{PROGRAM} is not set");
        eprintln!("skipped: {PROGRAM} is not set; `./dev test` installs Schemathesis");
        return None;
    };
    std::fs::write(place.folder.path().join("schemathesis.toml"), CONFIGURATION).unwrap();
    // As a file: of a document that it fetches itself, it leaves out the call that answers with it.
    let document = http().get(place.url("/openapi.json")).send().await.unwrap().bytes().await.unwrap();
    std::fs::write(place.folder.path().join("openapi.json"), &document).unwrap();
    let calls = calls_of(&serde_json::from_slice(&document).unwrap());
    let mut command = tokio::process::Command::new(program);
    command
        .args(["run", "openapi.json", "--url", &place.url("")])
        .args(["--checks", "all", "--seed", "1", "--request-timeout", "20"])
        // How long it takes to make something up says how busy the machine is.
        .args(["--suppress-health-check", "too_slow"]);
    match caller {
        Caller::WithKey => {
            command.args(["--max-examples", "10", "--header", &format!("X-API-Key: {}", place.system)])
        }
        Caller::WithoutKey => command.args(["--max-examples", "3"]),
        // The document says that a key is needed, and here none is.
        Caller::OnLoopback => command.args(["--max-examples", "3", "--exclude-checks", "ignored_auth"]),
    };
    let output = command.current_dir(place.folder.path()).stdin(Stdio::null()).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(&format!("Tested: {calls}\n")), "it has tried all {calls} calls: {said}");
    Some(said)
}

/// How many calls the document describes.
fn calls_of(document: &Value) -> usize {
    const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
    let paths = document["paths"].as_object().expect("the document has paths").values();
    paths.map(|path| METHODS.iter().filter(|method| path.get(*method).is_some()).count()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing_with_all_checks() {
    let place = Place::start().await;
    let unreachable = Arc::<AtomicUsize>::default();
    let node = tokio::spawn(end_runs(place.store.clone(), Arc::clone(&unreachable)));
    let said = schemathesis(&place, Caller::WithKey).await;
    end(node).await;
    if said.is_some() {
        assert_eq!(
            place.get("/api/v1/runs", &place.system).await.status,
            200,
            "the key opens nothing any more"
        );
        assert!(unreachable.load(Ordering::SeqCst) > 0, "no run met a host that does not answer");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_without_a_key_finds_nothing_and_changes_nothing() {
    let place = Place::start().await;
    if schemathesis(&place, Caller::WithoutKey).await.is_none() {
        return;
    }
    let keys = place.store.keys().await.unwrap();
    assert_eq!(keys.len(), 3, "those of the fixture");
    assert!(keys.iter().all(|key| key.used_at_ms.is_none()), "it had none of them");
    assert!(place.store.system_config().await.unwrap().is_empty());
    let runs = place.client(&place.system).runs(&cofferdam_api::RunQuery::default()).await.unwrap();
    assert!(runs.runs.is_empty(), "nothing was accepted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_without_a_key_finds_nothing_where_none_is_needed() {
    let place = Place::with(Setup { keys: KeyRule::NotOnLoopback, ..Setup::default() }).await;
    let node = tokio::spawn(end_runs(place.store.clone(), Arc::default()));
    schemathesis(&place, Caller::OnLoopback).await;
    end(node).await;
}

/// Ends a node, unless it has done so itself, which it must not.
async fn end(node: JoinHandle<()>) {
    match node.is_finished() {
        true => node.await.unwrap(),
        false => node.abort(),
    }
}

/// A node without a network, whose runs end as soon as they are taken, so that `POST /execute` is answered.
/// Each first run of three is told that its repository's host does not answer, and each second that there is no such repository.
async fn end_runs(store: Store, unreachable: Arc<AtomicUsize>) {
    let owner = Owner { node: NodeId::new(1, 2), place: PlaceId::new(1, 1) };
    // The number of each run, so that one which is tried again ends in the same way.
    let mut runs = HashMap::new();
    loop {
        let claimed = store.claim(&owner, u64::MAX >> 8, 60_000, &ClaimRules::default()).await.unwrap();
        let Some(claimed) = claimed else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let said = NewEvent::new(1, EventType::AgentMessage, json!({ "text": "done" }));
        store.append(&claimed.lease, &[said]).await.unwrap();
        let next = runs.len();
        let outcome = match *runs.entry(claimed.attempt.run.clone()).or_insert(next) % 3 {
            0 => {
                unreachable.fetch_add(1, Ordering::SeqCst);
                Outcome::failed(FailureClass::RepositoryHost, "Connection refused")
            }
            1 => Outcome::failed(FailureClass::Repository, "Could not resolve host"),
            _ => Outcome::Succeeded,
        };
        store.finish(&claimed.lease, &outcome, &Left::default(), u64::MAX >> 8).await.unwrap();
        store.wake();
    }
}
