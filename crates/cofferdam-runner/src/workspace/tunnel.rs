//! The one way out of a fetch for somebody else: a proxy on the loopback that connects to the repository's host, at the
//! address that was checked, and to nothing else.
//!
//! The attack: whoever may name a repository names a host that leads to this machine or its network, or that redirects
//! there, and has git of the node speak to what only the node can reach.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use cofferdam_core::{HostPort, RepoUrl, with_causes};
use cofferdam_net::{AddressCheck, DialError, Dialer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Error, FetchFault};

/// The longest head of a request for a connection.
const MOST_HEAD: usize = 8 << 10;
/// How long such a head may take: git is on this machine.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long it waits where the system takes no connection.
const PAUSE: Duration = Duration::from_millis(50);
/// The name that goes with the password; it means nothing.
const USER: &str = "cofferdam";

/// Whoever speaks for somebody else fetches with this.
#[derive(Clone)]
pub struct CheckedFetch {
    /// Connects to the host.
    pub dialer: Dialer,
    /// Which addresses it may be at.
    pub check: AddressCheck,
    /// Where the connections are made.
    pub runtime: Handle,
    /// What the host may send, and what a mirror and a checkout may be.
    pub most_bytes: u64,
}

impl CheckedFetch {
    /// Several times the largest repository that people work on.
    pub const MOST_BYTES: u64 = 8 << 30;

    pub(super) fn too_large(&self, url: &RepoUrl) -> Error {
        let (fault, message) = self.too_large_fault();
        Error::Fetch { url: url.to_string(), fault, message }
    }

    fn too_large_fault(&self) -> (FetchFault, String) {
        (FetchFault::Address, format!("it is larger than {} bytes", self.most_bytes))
    }
}

/// A proxy for one fetch. It ends when it is dropped.
pub(super) struct Tunnel {
    address: SocketAddr,
    password: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    fetch: CheckedFetch,
    target: HostPort,
    /// What git says to show that it is the git that was started for this fetch, and not somebody else on this machine.
    authorization: String,
    left: AtomicU64,
    trouble: Mutex<Option<(FetchFault, String)>>,
}

impl Tunnel {
    /// Listens for the git of one fetch. Not to be called on a thread that drives tasks.
    pub(super) fn open(fetch: &CheckedFetch, target: HostPort) -> io::Result<Self> {
        let listener = fetch.runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let mut bits = [0_u8; 16];
        rustix::rand::getrandom(&mut bits, rustix::rand::GetRandomFlags::empty())?;
        let password = format!("{:032x}", u128::from_le_bytes(bits));
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{USER}:{password}"));
        let state = Arc::new(State {
            fetch: fetch.clone(),
            target,
            authorization: format!("Basic {pair}"),
            left: AtomicU64::new(fetch.most_bytes),
            trouble: Mutex::default(),
        });
        let task = fetch.runtime.spawn(accept(listener, Arc::clone(&state)));
        Ok(Self { address, password, state, task })
    }

    /// What git is told in its environment, which others cannot read.
    pub(super) fn proxy(&self) -> String {
        format!("http://{USER}:{}@{}", self.password, self.address)
    }

    /// Why there was no connection, or none to the end.
    pub(super) fn trouble(&self) -> Option<(FetchFault, String)> {
        self.state.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    fn note(&self, fault: FetchFault, message: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some((fault, message));
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    // They end with the listener, since the set is dropped with it.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                match accepted {
                    Ok((client, _)) => {
                        connections.spawn(serve(client, Arc::clone(&state)));
                    }
                    // No descriptor is left: one that is closed meanwhile helps, and asking again at once does not.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(mut client: TcpStream, state: Arc<State>) {
    let answer = match timeout(HEAD_WITHIN, read_head(&mut client)).await {
        Ok(Ok(head)) if is_for(&head, &state) => {
            match state.fetch.dialer.connect(&state.target, &state.fetch.check).await {
                Ok(host) => return carry(client, host, &state).await,
                Err(error) => {
                    state.note(fault_of(&error), with_causes(&error));
                    "502 Bad Gateway"
                }
            }
        }
        Ok(Ok(_)) => "403 Forbidden",
        Ok(Err(_)) | Err(_) => return,
    };
    let head = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let _ = client.write_all(head.as_bytes()).await;
}

async fn read_head(client: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    // Byte by byte, since what follows the head is the host's.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MOST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(client.read_u8().await?);
    }
    String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Whether somebody asks for the one host, and is the git of this fetch.
fn is_for(head: &str, state: &State) -> bool {
    let mut lines = head.split("\r\n");
    let is_target = lines.next().is_some_and(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        matches!(words[..], ["CONNECT", target, "HTTP/1.1" | "HTTP/1.0"] if target.parse() == Ok(state.target.clone()))
    });
    let is_ours = lines.filter_map(|line| line.split_once(':')).any(|(name, value)| {
        name.eq_ignore_ascii_case("proxy-authorization") && value.trim() == state.authorization
    });
    is_target && is_ours
}

async fn carry(mut client: TcpStream, mut host: TcpStream, state: &State) {
    if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_err() {
        return;
    }
    let (mut from_client, mut to_client) = client.split();
    let (mut from_host, mut to_host) = host.split();
    // Git does not close its side before it has what it wants, so that the end of either is the end of both.
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_host) => {}
        carried = copy_within(&mut from_host, &mut to_client, &state.left) => match carried {
            Carried::All => {}
            Carried::UpToTheLimit => {
                let (fault, message) = state.fetch.too_large_fault();
                state.note(fault, message);
            }
        },
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carried {
    All,
    UpToTheLimit,
}

/// Copies as long as something is left of what all connections together may carry.
async fn copy_within(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    left: &AtomicU64,
) -> Carried {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else { return Carried::All };
        let less = |left: u64| left.checked_sub(count as u64);
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            return Carried::UpToTheLimit;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return Carried::All;
        }
    }
}

fn fault_of(error: &DialError) -> FetchFault {
    match error {
        DialError::Resolve { .. } | DialError::Private { .. } | DialError::ThisMachine { .. } => {
            FetchFault::Address
        }
        DialError::Unknown { .. } | DialError::Connect { .. } | DialError::TimedOut { .. } => {
            FetchFault::Host
        }
    }
}

#[cfg(test)]
#[path = "tunnel_tests.rs"]
mod tests;
