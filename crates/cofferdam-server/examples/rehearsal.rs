//! A service whose runs end as soon as they are taken, for programs that try every call: `rehearsal FOLDER PORT`. Prints
//! a key that opens everything.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::{Effective, EventType, NewEvent, NodeId, Outcome, PlaceId, Scopes};
use cofferdam_server::{Bounds, KeyRule, LocalArtifacts, Options, Service, make_key};
use cofferdam_store::{ArtifactPlace, ClaimRules, Left, NewArtifact, Owner, Store};
use serde_json::json;

type Failed = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let (folder, port) = arguments.next().zip(arguments.next()).ok_or("type: rehearsal FOLDER PORT")?;
    let folder = PathBuf::from(folder).canonicalize()?;
    std::fs::create_dir_all(folder.join("runs"))?;
    let store = Store::open_sqlite(&folder.join("cofferdam.db")).await?;
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let key = make_key(&store, "rehearsal", Scopes::all(), "rehearsal").await?.key;
    println!("{}", key.reveal());
    let options = Options {
        store: store.clone(),
        settings: Arc::new(Effective::default()),
        place: PlaceId::new(1, 1),
        state_folder: Some(folder.clone()),
        home: None,
        node: NodeId::new(1, 1),
        artifacts: Arc::new(LocalArtifacts::new(folder.join("runs"))),
        listen: listener.local_addr()?,
        keys: KeyRule::Always,
        bounds: Bounds::default(),
    };
    let service = Service::new(options)?;
    let node = tokio::spawn(async move {
        if let Err(error) = end_runs(&store, &folder).await {
            eprintln!("the node has failed: {error}");
        }
    });
    service.run(listener, async { drop(node.await) }).await;
    Ok(())
}

async fn end_runs(store: &Store, folder: &std::path::Path) -> Result<(), Failed> {
    let owner = Owner { node: NodeId::new(1, 2), place: PlaceId::new(1, 1) };
    loop {
        let Some(claimed) = store.claim(&owner, u64::MAX >> 8, 60_000, &ClaimRules::default()).await? else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let said = NewEvent::new(1, EventType::AgentMessage, json!({ "text": "done" }));
        store.append(&claimed.lease, &[said]).await?;
        let path = folder.join("runs").join(format!("{}.patch", claimed.attempt.run));
        std::fs::write(&path, "diff --git a/x b/x\n")?;
        let place = ArtifactPlace::File(path);
        let diff = NewArtifact { name: "diff".to_owned(), place, bytes: 19, sha256: "00".repeat(32) };
        let left = Left { artifacts: vec![diff], ..Left::default() };
        store.finish(&claimed.lease, &Outcome::Succeeded, &left, u64::MAX >> 8).await?;
        store.wake();
    }
}
