//! Where the API of the service begins.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::{Actor, Effective, KeyInput, NodeId, NodeName, OwnRole, Scopes};
use cofferdam_operations::{Operations, now_ms, random_bits};
use cofferdam_runner::Home;
use cofferdam_server::{Bounds, KeyRule, Options, Service, SharedArtifacts, StartError, TrustLookup};
use cofferdam_store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::record_place::open_artifacts;
use crate::service::OwnLogs;
use crate::settings;

/// Whoever asks is told that the record is away, and asks again; a run that is under way waits much longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The name of the key that the first start makes.
const FIRST_KEY_NAME: &str = "first start";

/// Lets callers of this machine in without a key.
const INSECURE: &str = "COFFERDAM_ALLOW_INSECURE_SYSTEM_CONTROL";

/// An API that takes requests.
pub(super) struct Api {
    /// Where.
    pub(super) listens: SocketAddr,
    /// Whether this start was the one that made the first key.
    pub(super) has_made_key: bool,
    /// Ends when it has stopped.
    pub(super) serving: JoinHandle<()>,
}

/// Starts the API on `service.listen`. When this returns, it takes requests, and it does so until `stop` is true.
pub(super) async fn start(
    home: &Home,
    name: &NodeName,
    caller: &Caller,
    settings: Effective,
    store: Store,
    mut stop: watch::Receiver<bool>,
) -> Result<Api, Failure> {
    let failed = |attempted: &'static str| move |error: std::io::Error| Failure::internal(attempted, &error);
    let store = store.with_patience(PATIENCE);
    let listen = settings.settings.service.listen;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        Failure::new(ExitCode::Refused, format!("the service cannot listen on {listen}: {error}"))
            .hint("type another address, such as `--listen 127.0.0.1:8788`")
    })?;
    let listens = listener.local_addr().map_err(failed("the service's address cannot be read"))?;
    let has_made_key = ensure_key(home, &store).await?;
    let service = Service::new(Options {
        support_of: |agent| cofferdam_agent::profile(agent).support,
        store,
        settings: Arc::new(settings),
        place: home.place(now_ms()).map_err(failed("the state folder's name cannot be kept"))?,
        state_folder: Some(home.root().to_owned()),
        home: caller.home(),
        node: NodeId::new(now_ms(), random_bits()),
        service: home.node_id(name, now_ms()).map_err(failed("the node's id cannot be kept"))?,
        logs: Arc::new(OwnLogs::new(home, name)),
        artifacts: Arc::new(SharedArtifacts::new(home.runs(), open_artifacts(home, caller)?)),
        trust: trust_of(home),
        listen: listens,
        keys: key_rule(caller),
        bounds: Bounds::default(),
    })
    .map_err(|error| refused(&error))?;
    let serving = tokio::spawn(service.run(listener, async move {
        // Whoever dropped the other end is gone, and so are we.
        let _ = stop.wait_for(|stop| *stop).await;
    }));
    Ok(Api { listens, has_made_key, serving })
}

/// What somebody who starts the service for the first time can paste.
pub(in crate::commands) fn first_words(home: &Home, listens: SocketAddr) -> String {
    let key = key_file(home.root());
    format!(
        "cofferdam: a key was made, in {key}; try:\n\n\
         curl -X POST http://{listens}/execute \\\n  \
         -H \"X-API-Key: $(cat {key})\" -H 'Content-Type: application/json' \\\n  \
         -d '{{\"task\": \"Create a hello world Python script\"}}'\n\n",
        key = key.display(),
    )
}

/// Whether this state folder has its key already.
pub(in crate::commands) fn has_key(home: &Home) -> bool {
    key_file(home.root()).exists()
}

fn key_file(state: &Path) -> std::path::PathBuf {
    state.join("api-key")
}

/// Makes a key with every scope, unless this state folder has one. True if it did.
async fn ensure_key(home: &Home, store: &Store) -> Result<bool, Failure> {
    if has_key(home) {
        return Ok(false);
    }
    let path = key_file(home.root());
    let input = KeyInput { name: FIRST_KEY_NAME.to_owned(), scopes: Scopes::all(), owner: None };
    let made = Operations::for_own_use(store.clone())
        .create_key(&Actor::Role(OwnRole::FirstStart), &input)
        .await
        .map_err(|error| Failure::internal("the first key cannot be kept", &error))?;
    // Beside and renamed, so that nobody ever reads half a key. One whose writing was cut off opens nothing that
    // anybody knows.
    let unready = path.with_extension("making");
    let written = std::fs::File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&unready)
        .and_then(|mut file| {
            file.write_all(made.key.reveal().as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&unready, &path));
    written.map_err(|error| Failure::internal("the first key cannot be written", &error))?;
    Ok(true)
}

/// What this state folder trusts, as it is whenever somebody asks.
fn trust_of(home: &Home) -> TrustLookup {
    let state = home.root().to_owned();
    Arc::new(move || settings::trust_list(Some(&state)).map_err(|failure| failure.message().to_owned()))
}

fn key_rule(caller: &Caller) -> KeyRule {
    if is_open_on_loopback(caller) { KeyRule::NotOnLoopback } else { KeyRule::Always }
}

/// Whether callers of this machine are let in without a key.
pub(in crate::commands) fn is_open_on_loopback(caller: &Caller) -> bool {
    caller.var(INSECURE).is_some_and(|value| value == "true")
}

fn refused(error: &StartError) -> Failure {
    let hint = match error {
        StartError::OpenToOthers(_) => format!("unset {INSECURE}, or listen on 127.0.0.1"),
        StartError::NoWalls(_) => format!("unset {INSECURE}, or take the mode out of service.allowed_modes"),
    };
    Failure::new(ExitCode::Refused, error.to_string()).hint(hint)
}
