//! Schemathesis reads `/openapi.json` and tries every call with what it makes up: nothing may be answered in another way
//! than is described.

use std::process::Stdio;
use std::time::Duration;

use cofferdam_core::{EventType, FailureClass, NewEvent, NodeId, Outcome, PlaceId, Source};
use cofferdam_store::{ClaimRules, Left, Owner, Store};
use serde_json::json;

use crate::fixture::Place;

/// Names the program: `./dev test` installs it.
const PROGRAM: &str = "COFFERDAM_SCHEMATHESIS";

/// A repository that is made up is a good request, whose run has nowhere to start from: 422.
const CONFIGURATION: &str = "[checks]\n\
    positive_data_acceptance.expected-statuses = [\"2xx\", 401, 403, 404, 409, 422, \"5xx\"]\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing_with_all_checks() {
    let Some(program) = std::env::var_os(PROGRAM) else {
        assert!(std::env::var_os("CI").is_none(), "{PROGRAM} is not set");
        eprintln!("skipped: {PROGRAM} is not set; `./dev test` installs Schemathesis");
        return;
    };
    let place = Place::start().await;
    std::fs::write(place.folder.path().join("schemathesis.toml"), CONFIGURATION).unwrap();
    let node = tokio::spawn(end_runs(place.store.clone()));
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
}

/// A node without a network, whose runs end as soon as they are taken, so that `POST /execute` is answered.
async fn end_runs(store: Store) {
    let owner = Owner { node: NodeId::new(1, 2), place: PlaceId::new(1, 1) };
    loop {
        let claimed = store.claim(&owner, u64::MAX >> 8, 60_000, &ClaimRules::default()).await.unwrap();
        let Some(claimed) = claimed else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let said = NewEvent::new(1, EventType::AgentMessage, json!({ "text": "done" }));
        store.append(&claimed.lease, &[said]).await.unwrap();
        let outcome = match claimed.request.source {
            Source::Git { .. } => Outcome::failed(FailureClass::Repository, "Could not resolve host"),
            Source::Local { .. } | Source::Empty => Outcome::Succeeded,
        };
        store.finish(&claimed.lease, &outcome, &Left::default(), u64::MAX >> 8).await.unwrap();
        store.wake();
    }
}
