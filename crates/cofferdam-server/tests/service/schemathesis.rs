//! Schemathesis reads `/openapi.json` and tries every call with what it makes up: nothing may be answered in another way
//! than is described.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cofferdam_core::{EventType, FailureClass, NewEvent, NodeId, Outcome, PlaceId};
use cofferdam_store::{ClaimRules, Left, Owner, Store};
use serde_json::json;

use crate::fixture::Place;

/// Names the program: `./dev test` installs it.
const PROGRAM: &str = "COFFERDAM_SCHEMATHESIS";

/// What a schema could not tell, and is no mistake of ours: that a repository is not there or its host does not answer, that no node
/// is there to ask, and which values each key of the configuration takes. No other call may answer so.
const CONFIGURATION: &str = r#"
[[operations]]
include-name = "POST /execute"

[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 502]

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429, 502]

[[operations]]
include-path-regex = "^/system/[a-z]+/auth$"

[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 503]

[[operations]]
include-name = "PATCH /config"

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429]
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing_with_all_checks() {
    let Some(program) = std::env::var_os(PROGRAM) else {
        assert!(std::env::var_os("CI").is_none(), "{PROGRAM} is not set");
        eprintln!("skipped: {PROGRAM} is not set; `./dev test` installs Schemathesis");
        return;
    };
    let place = Place::start().await;
    std::fs::write(place.folder.path().join("schemathesis.toml"), CONFIGURATION).unwrap();
    let unreachable = Arc::<AtomicUsize>::default();
    let node = tokio::spawn(end_runs(place.store.clone(), Arc::clone(&unreachable)));
    let output = tokio::process::Command::new(program)
        .arg("run")
        .arg(place.url("/openapi.json"))
        .args(["--checks", "all", "--max-examples", "10", "--seed", "1", "--request-timeout", "20"])
        // How long it takes to make something up says how busy the machine is.
        .args(["--suppress-health-check", "too_slow"])
        .args(["--header", &format!("X-API-Key: {}", place.system)])
        .current_dir(place.folder.path())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    node.abort();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Tested: 51"), "it has tried every call: {said}");
    assert!(unreachable.load(Ordering::SeqCst) > 0, "no run met a host that does not answer");
}

/// A node without a network, whose runs end as soon as they are taken, so that `POST /execute` is answered.
/// A third of the runs are told that there is no such repository, and a third that its host does not answer.
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
            0 => Outcome::Succeeded,
            1 => Outcome::failed(FailureClass::Repository, "Could not resolve host"),
            _ => {
                unreachable.fetch_add(1, Ordering::SeqCst);
                Outcome::failed(FailureClass::RepositoryHost, "Connection refused")
            }
        };
        store.finish(&claimed.lease, &outcome, &Left::default(), u64::MAX >> 8).await.unwrap();
        store.wake();
    }
}
