//! The one way out of a fetch for somebody else: a proxy behind a socket that the fetch's sandbox sees, which connects to the
//! repository's host, at the address that was checked, and to nothing else.
//!
//! The attack: whoever may name a repository names a host that leads to this machine or its network, or that redirects
//! there, and has git of the node speak to what only the node can reach.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cofferdam_core::{HostPort, gateway, with_causes};
use cofferdam_net::DialError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::CheckedFetch;
use crate::workspace::FetchFault;

/// The longest head of a request for a connection.
const MOST_HEAD: usize = 8 << 10;
/// How long such a head may take: git is on this machine.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long it waits where the system takes no connection.
const PAUSE: Duration = Duration::from_millis(50);

/// A proxy for one fetch. It ends when it is dropped.
pub(super) struct Tunnel {
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    fetch: CheckedFetch,
    target: HostPort,
    left: AtomicU64,
    trouble: Mutex<Option<(FetchFault, String)>>,
}

impl Tunnel {
    /// Listens for the git of one fetch, at a socket in this folder, which is made. Whoever can reach that is this git: what is
    /// above the folder is closed.
    pub(super) fn open(fetch: &CheckedFetch, target: HostPort, folder: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o755).create(folder)?;
        let _runtime = fetch.runtime.enter();
        // A socket's address holds 107 bytes, and a state folder may lie deeper.
        let open = File::open(folder)?;
        let listener = UnixListener::bind(format!("/proc/self/fd/{}/{}", open.as_raw_fd(), gateway::SOCKET))?;
        // In a sandbox that root makes, git is somebody else.
        fs::set_permissions(folder.join(gateway::SOCKET), Permissions::from_mode(0o666))?;
        let state = Arc::new(State {
            fetch: fetch.clone(),
            target,
            left: AtomicU64::new(fetch.most_bytes),
            trouble: Mutex::default(),
        });
        let task = fetch.runtime.spawn(accept(listener, Arc::clone(&state)));
        Ok(Self { state, task })
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

async fn accept(listener: UnixListener, state: Arc<State>) {
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

async fn serve(mut client: UnixStream, state: Arc<State>) {
    let answer = match timeout(HEAD_WITHIN, read_head(&mut client)).await {
        Ok(Ok(head)) if is_for(&head, &state.target) => {
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

async fn read_head(client: &mut UnixStream) -> io::Result<String> {
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

/// Whether it is the one host that is asked for.
fn is_for(head: &str, target: &HostPort) -> bool {
    let words: Vec<&str> = head.lines().next().unwrap_or_default().split(' ').collect();
    matches!(words[..], ["CONNECT", asked, "HTTP/1.1" | "HTTP/1.0"] if asked.parse().as_ref() == Ok(target))
}

async fn carry(mut client: UnixStream, mut host: TcpStream, state: &State) {
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
