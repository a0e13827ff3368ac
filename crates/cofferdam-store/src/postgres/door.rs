//! The way to a server that is known by its name.
//!
//! The database's driver would have the C library resolve the name, which a static program must not do. So the driver is
//! given a socket of this process, and behind it the name is resolved for each connection and the bytes are carried to
//! the server. The driver still knows the name, and holds the server's certificate against it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;

use crate::names::resolve;

/// After an accept that failed for want of descriptors: others have to end first.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

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
        let serving = tokio::spawn(serve(listener, name, port));
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

/// Takes connections until it is dropped. An accept that fails says nothing of the next one: a process that was out of
/// descriptors for a moment would otherwise never reach its database again.
async fn serve(listener: UnixListener, host: String, port: u16) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let host = host.clone();
                // What fails here is an end of file to the driver, which tries again.
                tokio::spawn(async move { carry(stream, &host, port).await.ok() });
            }
            Err(_) => tokio::time::sleep(AFTER_FAILURE).await,
        }
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream as StdStream;
    use std::process::Command;

    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    /// Says to the test that it was started again, in a process of its own.
    const ALONE: &str = "COFFERDAM_TEST_ALONE";
    const IN_TIME: Duration = Duration::from_secs(30);

    #[test]
    fn a_door_outlives_a_lack_of_descriptors() {
        // The limit is the whole process's, in which other tests may run.
        if std::env::var_os(ALONE).is_none() {
            let own = std::env::current_exe().expect("this test is a program");
            let name = "postgres::door::tests::a_door_outlives_a_lack_of_descriptors";
            let output = Command::new(own).args(["--exact", name]).env(ALONE, "1").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            return;
        }
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = server.local_addr().unwrap().port();
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = server.accept().await {
                    tokio::spawn(async move {
                        let (mut read, mut write) = stream.split();
                        tokio::io::copy(&mut read, &mut write).await.ok()
                    });
                }
            });
            let door = Door::to("127.0.0.1", port).unwrap();
            let path = format!("{}/.s.PGSQL.{port}", door.folder().display());
            let address =
                SocketAddrUnix::new_abstract_name(path.trim_start_matches('\0').as_bytes()).unwrap();
            // Its descriptor is made before there are no more: to connect it takes none.
            let early = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
            let usual = getrlimit(Resource::Nofile);
            setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum: usual.maximum }).unwrap();
            connect(&early, &address).unwrap();
            // Each turn looks at the sockets once.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            setrlimit(Resource::Nofile, usual).unwrap();
            let early = StdStream::from(early);
            early.set_nonblocking(true).unwrap();
            echoes(UnixStream::from_std(early).unwrap()).await;
            echoes(UnixStream::connect(&path).await.unwrap()).await;
        });
    }

    async fn echoes(mut stream: UnixStream) {
        let mut answer = [0; 5];
        let told = timeout(IN_TIME, async {
            stream.write_all(b"hello").await?;
            stream.read_exact(&mut answer).await
        });
        told.await.expect("the door answers").expect("the door leads to the server");
        assert_eq!(&answer, b"hello");
    }
}
