//! The way to a server that is known by its name.
//!
//! The database's driver would have the C library resolve the name, which a static program must not do. So the driver is
//! given a socket of this process, and behind it the name is resolved for each connection and the bytes are carried to
//! the server. The driver still knows the name, and holds the server's certificate against it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;

use crate::names::resolve;

/// Leads to one server, until it is dropped.
#[derive(Debug)]
pub(super) struct Door {
    host: String,
    port: u16,
    folder: PathBuf,
    serving: JoinHandle<()>,
}

impl Door {
    /// Opens a door to a server. Must be called within a tokio runtime.
    pub(super) fn to(host: &str, port: u16) -> io::Result<Self> {
        let (folder, listener) = listen(port)?;
        let host = host.to_owned();
        let name = host.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let host = name.clone();
                // What fails here is an end of file to the driver, which tries again.
                tokio::spawn(async move { carry(stream, &host, port).await.ok() });
            }
        });
        Ok(Self { host, port, folder, serving })
    }

    /// Whether the server can be reached: the driver sees no more of it than an end of file.
    pub(super) async fn try_out(&self) -> io::Result<()> {
        connect(&self.host, self.port).await.map(drop)
    }

    /// The folder in which the driver looks for the socket. It is an abstract one: nothing is on the disk.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Listens under a name that nobody has taken.
fn listen(port: u16) -> io::Result<(PathBuf, UnixListener)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    const TRIES: u32 = 100;
    let mut failed = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = PathBuf::from(format!("\0cofferdam-store-{}-{number}", std::process::id()));
        match UnixListener::bind(format!("{}/.s.PGSQL.{port}", folder.display())) {
            Ok(listener) => return Ok((folder, listener)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Carries the bytes of one connection. An abstract socket has no mode; only this process itself may come in.
async fn carry(mut inside: UnixStream, host: &str, port: u16) -> io::Result<()> {
    let own = i32::try_from(std::process::id()).ok();
    if inside.peer_cred()?.pid() != own {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut outside = connect(host, port).await?;
    outside.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut inside, &mut outside).await?;
    Ok(())
}

async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::HostUnreachable);
    for address in resolve(host).await.map_err(io::Error::other)? {
        match TcpStream::connect((address, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
