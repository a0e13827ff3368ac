//! A running model.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::record::{Kind, Recorded, Seen, write_ended};
use crate::script::Script;
use crate::server::{Shared, serve};
use crate::watched::Watched;

/// A running model. It has a thread of its own, so that tests may be async or not, and ends when it is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    seen: Arc<Watched<Seen>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// How long a test waits for what must happen.
const DEADLINE: Duration = Duration::from_secs(120);

impl ScriptedModel {
    /// Plays a script on a free port of this machine.
    ///
    /// # Panics
    /// If there is no such port.
    #[must_use]
    pub fn start(script: Script) -> Self {
        Self::start_on(script, 0).expect("a free port on the loopback")
    }

    /// Plays a script on a port of this machine.
    ///
    /// # Errors
    /// If the port is taken, or no thread can be made.
    pub fn start_on(script: Script, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let seen = Arc::<Watched<Seen>>::default();
        let shared = Shared { script, position: Default::default(), seen: Arc::clone(&seen) };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("scripted-model".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, Arc::new(shared)) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, seen, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its base URL, without `/v1` and without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request that arrived, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.seen.read(|seen| seen.requests.clone())
    }

    /// How many generating calls took an answer from the script.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.seen.read(|seen| seen.count(Kind::Call))
    }

    /// How many requests without tools were answered beside the script.
    #[must_use]
    pub fn asides(&self) -> usize {
        self.seen.read(|seen| seen.count(Kind::Aside))
    }

    /// The most generating calls that were in flight at once.
    #[must_use]
    pub fn max_in_flight(&self) -> usize {
        self.seen.read(|seen| seen.max_in_flight)
    }

    /// Opens a gate, for the answers that wait there and for those to come.
    pub fn release(&self, gate: &str) {
        self.seen.change(|seen| seen.released.insert(gate.to_owned()));
    }

    /// Waits until an answer is held at a gate.
    ///
    /// # Panics
    /// If none is within two minutes.
    pub fn wait_held(&self, gate: &str) {
        self.wait(&format!("an answer held at {gate}"), |seen| seen.is_held(gate));
    }

    /// Waits until so many generating calls have arrived.
    ///
    /// # Panics
    /// If they have not within two minutes.
    pub fn wait_calls(&self, calls: usize) {
        self.wait(&format!("{calls} calls"), |seen| seen.count(Kind::Call) >= calls);
    }

    /// Waits until no request is in flight, so that every one has its ending.
    ///
    /// # Panics
    /// If one still is after two minutes.
    pub fn wait_idle(&self) {
        self.wait("no request in flight", |seen| seen.requests.iter().all(|one| one.ending.is_some()));
    }

    /// Like [`Self::wait_held`], for async tests; without a deadline.
    pub async fn held(&self, gate: &str) {
        self.seen.until(|seen| seen.is_held(gate)).await;
    }

    /// Like [`Self::wait_calls`], for async tests; without a deadline.
    pub async fn until_calls(&self, calls: usize) {
        self.seen.until(|seen| seen.count(Kind::Call) >= calls).await;
    }

    /// Writes each request that ends as a line of JSON, for ever.
    ///
    /// # Errors
    /// If a line cannot be written.
    pub async fn write_requests(&self, mut out: impl io::Write) -> io::Result<()> {
        let mut written = BTreeSet::new();
        loop {
            let ended = |seen: &Seen| seen.requests.iter().filter(|one| one.ending.is_some()).count();
            let before = written.len();
            self.seen.until(|seen| ended(seen) > before).await;
            self.seen.read(|seen| write_ended(seen, &mut written, &mut out))?;
        }
    }

    /// Stops, and drops every connection.
    pub fn shutdown(self) {
        drop(self);
    }

    fn wait(&self, what: &str, holds: impl Fn(&Seen) -> bool) {
        let came = self.seen.wait(DEADLINE, holds);
        assert!(came, "there was no {what}; requests: {:#?}", self.seen.read(Seen::lines));
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        // The thread may have ended on its own only by a panic, which is then this test's.
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(!matches!(ended, Some(Err(_))), "the scripted model's thread panicked");
        }
    }
}
