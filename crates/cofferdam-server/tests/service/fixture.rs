//! A service on a loopback port with a fresh record and a key for each kind of caller.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_agent::profile;
use cofferdam_api::{Client, CreateRunRequest, TrustList, TrustState, TrustedFileResponse};
use cofferdam_core::{
    Actor, Agent, Effective, EventType, InputSyntax, KeyInput, NewEvent, NodeId, Origin, Outcome, PlaceId,
    Policy, RunId, RunInput, RunRequest, Scope, Source, Support, Surroundings, Variable, Work, read_layer,
};
use cofferdam_operations::{MadeKey, NewRun, Operations, Way};
use cofferdam_server::{Bounds, KeyRule, LocalArtifacts, NoLogs, Options, Service};
use cofferdam_store::{ClaimRules, Claimed, Left, NewArtifact, Owner, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) struct Setup {
    pub(crate) settings: String,
    pub(crate) keys: KeyRule,
    pub(crate) bounds: Bounds,
}

impl Default for Setup {
    fn default() -> Self {
        Self { settings: "{}".to_owned(), keys: KeyRule::Always, bounds: Bounds::default() }
    }
}

pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) store: Store,
    settings: Arc<Effective>,
    pub(crate) address: SocketAddr,
    pub(crate) read: String,
    pub(crate) run: String,
    pub(crate) system: String,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
}

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn code(&self) -> &str {
        self.body["error_code"].as_str().unwrap_or_default()
    }

    /// Status and code, which is what most refusals are about.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.status, self.code())
    }
}

impl Place {
    pub(crate) async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        let store = Store::open_sqlite(&folder.path().join("cofferdam.db")).await.unwrap();
        let settings = Arc::new(
            Effective::default().under(&read_layer(&setup.settings, &Origin::Global("/g".into())).unwrap()),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let options = Options {
            support_of: |agent| profile(agent).support,
            store: store.clone(),
            settings: Arc::clone(&settings),
            place: PlaceId::new(1, 1),
            state_folder: Some(folder.path().to_owned()),
            home: None,
            node: NodeId::new(1, 99),
            service: NodeId::new(1, 98),
            logs: Arc::new(NoLogs),
            artifacts: Arc::new(LocalArtifacts::new(folder.path().join("runs"))),
            trust: Arc::new(|| Ok(trusted())),
            listen: address,
            keys: setup.keys,
            bounds: setup.bounds,
        };
        let mut keys = Vec::new();
        for (owner, scopes) in [
            ("reader", &[Scope::Read][..]),
            ("runner", &[Scope::Read, Scope::Run]),
            ("operator", &Scope::ALL),
        ] {
            keys.push(key(&store, owner, scopes).await.key.reveal().to_owned());
        }
        let (stop, stopped) = oneshot::channel();
        let service = Service::new(options).unwrap();
        let serving = tokio::spawn(service.run(listener, async move { drop(stopped.await) }));
        let [read, run, system] = keys.try_into().unwrap();
        let (stop, serving) = (Some(stop), Some(serving));
        Self { folder, store, settings, address, read, run, system, stop, serving }
    }

    /// Another key.
    pub(crate) async fn key(&self, owner: &str, scopes: &[Scope]) -> MadeKey {
        key(&self.store, owner, scopes).await
    }

    /// The operations that the service itself has.
    pub(crate) fn operations(&self) -> Operations {
        Operations::new(self.store.clone(), Arc::clone(&self.settings), Arc::new(|_| false))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn client(&self, key: &str) -> Client {
        Client::new(&self.url(""), Some(key)).unwrap()
    }

    pub(crate) async fn get(&self, path: &str, key: &str) -> Answer {
        answer(http().get(self.url(path)).header("x-api-key", key)).await
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        answer(http().post(self.url(path)).header("x-api-key", key).json(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, key: &str, body: &Value) -> Answer {
        answer(http().patch(self.url(path)).header("x-api-key", key).json(body)).await
    }

    pub(crate) async fn put(&self, path: &str, key: &str, body: &Value) -> Answer {
        answer(http().put(self.url(path)).header("x-api-key", key).json(body)).await
    }

    pub(crate) async fn delete(&self, path: &str, key: &str) -> Answer {
        answer(http().delete(self.url(path)).header("x-api-key", key)).await
    }

    /// A queued run of a program.
    pub(crate) async fn queued(&self) -> RunId {
        let command = Some(vec!["true".to_owned()]);
        let request = CreateRunRequest { command, ..CreateRunRequest::default() };
        self.client(&self.run).create_run(&request, None).await.unwrap().id
    }

    /// What a node does first.
    pub(crate) async fn claim(&self, run: &RunId) -> Claimed {
        let owner = Owner { node: NodeId::new(1, 7), place: PlaceId::new(1, 1) };
        let rules = ClaimRules::default();
        let now = u64::MAX >> 8;
        self.store.claim_run(run, &owner, now, 1 << 40, &rules).await.unwrap().expect("the run is queued")
    }

    /// What a node does on the way.
    pub(crate) async fn say(&self, claimed: &Claimed, text: &str) {
        let event = NewEvent::new(1, EventType::AgentMessage, json!({ "text": text }));
        self.store.append(&claimed.lease, &[event]).await.unwrap();
        self.store.wake();
    }

    /// What a node does last.
    pub(crate) async fn finish(&self, claimed: &Claimed, outcome: &Outcome, diff: Option<&str>) {
        let artifacts = diff.map(|diff| self.artifact(claimed, "diff", diff)).into_iter().collect();
        let left = Left { artifacts, ..Left::default() };
        self.store.finish(&claimed.lease, outcome, &left, 5_000).await.unwrap();
        self.store.wake();
    }

    fn artifact(&self, claimed: &Claimed, name: &str, text: &str) -> NewArtifact {
        let path: PathBuf = self.folder.path().join("runs").join(format!("{}-{name}", claimed.attempt.run));
        std::fs::write(&path, text).unwrap();
        NewArtifact {
            name: name.to_owned(),
            place: path.into(),
            bytes: text.len() as u64,
            sha256: "00".repeat(32),
        }
    }

    pub(crate) async fn stop(&mut self) {
        drop(self.stop.take());
        self.serving.take().unwrap().await.unwrap();
    }
}

/// What the service's machine trusts.
fn trusted() -> TrustList {
    let file = TrustedFileResponse {
        path: "/r/.cofferdam/settings.json".to_owned(),
        sha256: "00".repeat(32),
        trusted_at_ms: 1,
        state: TrustState::Changed,
    };
    TrustList { files: vec![file], origins: Vec::new() }
}

/// A key of this owner.
async fn key(store: &Store, owner: &str, scopes: &[Scope]) -> MadeKey {
    let input = KeyInput {
        name: "test".to_owned(),
        scopes: scopes.iter().copied().collect(),
        owner: Some(owner.to_owned()),
    };
    Operations::for_own_use(store.clone()).create_key(&Actor::LocalUser, &input).await.unwrap()
}

/// A machine of which nothing is known.
pub(crate) struct Elsewhere;

impl Surroundings for Elsewhere {
    fn canonical(&self, _path: &std::path::Path) -> Option<PathBuf> {
        None
    }

    fn repository_root(&self, _path: &std::path::Path) -> Option<PathBuf> {
        None
    }

    fn state_folder(&self) -> Option<PathBuf> {
        None
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }

    fn variable(&self, _name: &str) -> Variable {
        Variable::Unknown
    }

    fn support_of(&self, agent: Agent) -> Support {
        profile(agent).support
    }
}

/// An input as the service takes it.
pub(crate) fn new_run<'a>(input: &'a RunInput, surroundings: &'a Elsewhere) -> NewRun<'a> {
    static PLACE: std::sync::LazyLock<PlaceId> = std::sync::LazyLock::new(|| PlaceId::new(1, 1));
    NewRun { input, syntax: InputSyntax::Fields, way: Way::Queued { place: &PLACE }, surroundings }
}

/// A request that anybody who may run anything may make.
pub(crate) fn plain_request(id: &RunId) -> RunRequest {
    RunRequest::new(
        id.clone(),
        Source::Empty,
        Work::Program { argv: vec!["true".to_owned()] },
        Policy { timeout_ms: 60_000, ..Policy::default() },
    )
}

pub(crate) async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let text = answer.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Answer { status, headers, body }
}

/// A repository below a folder.
pub(crate) fn repository(folder: &std::path::Path, name: &str) -> PathBuf {
    let path = folder.canonicalize().unwrap().join(name);
    std::fs::create_dir_all(path.join(".git")).unwrap();
    path
}

/// A caller that can send anything.
pub(crate) fn http() -> reqwest::Client {
    static PROVIDER: std::sync::Once = std::sync::Once::new();
    PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
    reqwest::Client::new()
}
