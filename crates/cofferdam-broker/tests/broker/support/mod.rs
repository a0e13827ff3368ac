//! A broker with one or more attempts, real sockets around it, and a name server that says what it is told.

pub(crate) mod ledger;
pub(crate) mod own_network;
pub(crate) mod servers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_broker::{
    Bounds, Broker, GitCredential, GitRepository, Grant, Locked, NoGitCredential, Options, PriceTable,
    Secrets, Upstream,
};
use cofferdam_core::{Agent, AllowRule, AttemptRef, Forward, RunId, Vendor, gateway};
use cofferdam_local_servers::NameServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use ledger::Notebook;

/// Long enough that it is never what a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A broker, its name server and what it wrote down.
pub(crate) struct Fixture {
    pub(crate) broker: Broker,
    pub(crate) names: NameServer,
    pub(crate) notebook: Arc<Notebook>,
    folder: tempfile::TempDir,
}

/// One attempt of a fixture.
pub(crate) struct Client {
    pub(crate) attempt: AttemptRef,
    pub(crate) folder: PathBuf,
}

struct NoSecrets;

impl Secrets for NoSecrets {
    fn upstream(&self, _: Vendor, _: Option<Agent>) -> Result<Upstream, Locked> {
        Err(Locked::NoKey)
    }

    fn git(&self, _: &GitRepository<'_>) -> Result<GitCredential, NoGitCredential> {
        Err(NoGitCredential::NoToken)
    }
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with_bounds(Bounds::default()).await
    }

    pub(crate) async fn with_bounds(bounds: Bounds) -> Self {
        let names = NameServer::start().await;
        let notebook = Arc::new(Notebook::default());
        let broker = broker(&names, bounds, &notebook);
        Self { broker, names, notebook, folder: tempfile::tempdir().unwrap() }
    }

    /// A broker of another process, after this one is gone.
    pub(crate) fn restart(&mut self) {
        self.broker = broker(&self.names, Bounds::default(), &self.notebook);
    }

    pub(crate) async fn attempt(&self, number: u32, allow: &[&str]) -> Client {
        self.open(number, Some(rules(allow)), vec![]).await
    }

    pub(crate) async fn open(
        &self,
        number: u32,
        proxy: Option<Vec<AllowRule>>,
        forwards: Vec<Forward>,
    ) -> Client {
        let attempt = AttemptRef { run: RunId::new(7, 9), number };
        let folder = self.folder.path().join(number.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let grant = Grant {
            attempt: attempt.clone(),
            folder: folder.clone(),
            proxy,
            forwards,
            model: None,
            git: None,
        };
        self.broker.open(grant).await.unwrap();
        Client { attempt, folder }
    }
}

fn broker(names: &NameServer, bounds: Bounds, notebook: &Arc<Notebook>) -> Broker {
    let options = Options {
        secrets: Arc::new(NoSecrets),
        name_servers: vec![names.address()],
        prices: PriceTable::default(),
        bounds,
    };
    Broker::new(options, notebook.clone())
}

pub(crate) fn rules(texts: &[&str]) -> Vec<AllowRule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

impl Client {
    pub(crate) async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.join(gateway::SOCKET)).await.unwrap()
    }

    pub(crate) async fn connect_forward(&self, port: u16) -> UnixStream {
        UnixStream::connect(self.folder.join(gateway::forward_socket(port))).await.unwrap()
    }

    /// Sends bytes and reads until the broker closes the connection.
    pub(crate) async fn exchange(&self, request: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_ref()).await.unwrap();
        read_to_end(&mut stream).await
    }

    /// A plain request through the proxy, on a connection of its own.
    pub(crate) async fn get(&self, host: &str, path: &str) -> String {
        self.exchange(format!(
            "GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ))
        .await
    }

    /// Opens a tunnel; the head of the answer, and the stream behind it.
    pub(crate) async fn tunnel(&self, target: &str) -> (String, UnixStream) {
        let mut stream = self.connect().await;
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let head = read_head(&mut stream).await;
        (head, stream)
    }
}

/// Reads until the empty line.
pub(crate) async fn read_head(stream: &mut UnixStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(in_time(stream.read_u8()).await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

pub(crate) async fn read_to_end(stream: &mut UnixStream) -> String {
    let mut answer = Vec::new();
    in_time(stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Fails a test that would hang.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("this ends long before")
}
