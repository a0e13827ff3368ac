//! Schemathesis reads `/openapi.json` and tries every call with what it makes up: nothing may be answered in another way
//! than is described.

use std::process::Stdio;
use std::time::Duration;

use cofferdam_core::{EventType, NewEvent, NodeId, Outcome, PlaceId};
use cofferdam_store::{ClaimRules, Left, Owner, Store};
use serde_json::json;

use crate::fixture::Place;

/// Names the program: `./dev test` installs it.
const PROGRAM: &str = "COFFERDAM_SCHEMATHESIS";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing_with_all_checks() {
    let Some(program) = std::env::var_os(PROGRAM) else {
        assert!(std::env::var_os("CI").is_none(), "{PROGRAM} is not set");
        eprintln!("skipped: {PROGRAM} is not set; `./dev test` installs Schemathesis");
        return;
    };
    let place = Place::start().await;
    let node = tokio::spawn(end_runs(place.store.clone()));
    let output = tokio::process::Command::new(program)
        .arg("run")
        .arg(place.url("/openapi.json"))
        .args(["--checks", "all", "--max-examples", "10", "--seed", "1", "--request-timeout", "20"])
        .args(["--header", &format!("X-API-Key: {}", place.system)])
        .current_dir(place.folder.path())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    node.abort();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Tested: 32"), "it has tried every call: {said}");
}

/// A node whose runs end as soon as they are taken, so that `POST /execute` is answered.
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
        store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), u64::MAX >> 8).await.unwrap();
        store.wake();
    }
}
