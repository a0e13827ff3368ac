//! The way to the broker: ports on the loopback whose bytes go to Unix sockets, and back.
//!
//! One thread serves all of them. A process or a thread per connection would count against the agent's own
//! limit on processes, and an agent could starve itself of its model.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdTcpListener};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cofferdam_core::{Gateway, Login, gateway};
use tokio::io::{AsyncWriteExt, copy, sink};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

/// Connections at a time, over all ports. Each costs two descriptors and two small buffers, which count as the
/// sandbox's own. What comes beyond waits in the kernel's queue.
const CONNECTIONS: usize = 512;
/// How long a broker may be away, because it is being restarted, before a connection is given up.
const BROKER_AWAY: Duration = Duration::from_secs(10);
/// How often it is looked for meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A socket's address holds 107 bytes; the rest is for its name.
const LONGEST_FOLDER: usize = 80;
/// How long an agent may go on sending what nobody reads any more.
const LINGER: Duration = Duration::from_secs(10);
/// After a failed accept (no descriptors left) the next one would fail at once, too.
const PAUSE: Duration = Duration::from_millis(20);

/// An open gateway. It stays open as long as the worker lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opened {
    /// Where the agent reaches the broker, on 127.0.0.1.
    pub(crate) port: u16,
}

/// Listens on the gateway's ports, and forwards in a thread of its own. When this returns, the ports answer.
pub(crate) fn open(setup: &Gateway) -> io::Result<Opened> {
    let (folder, open) = reachable(Path::new(&setup.folder))?;
    let main = listen(setup.port.unwrap_or(0))?;
    let port = main.local_addr()?.port();
    let mut ports = vec![(main, folder.join(gateway::SOCKET))];
    for &forward in &setup.forwards {
        ports.push((listen(forward)?, folder.join(gateway::forward_socket(forward))));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    thread::Builder::new().name("gateway".to_owned()).spawn(move || {
        let _open = open;
        runtime.block_on(serve(ports));
    })?;
    Ok(Opened { port })
}

/// The folder, by a path that leaves room for a socket's name, and what has to stay open for it to be right.
/// Outside of a sandbox of our own the folder is in the state folder, which may lie deep.
fn reachable(folder: &Path) -> io::Result<(PathBuf, Option<File>)> {
    if folder.as_os_str().len() <= LONGEST_FOLDER {
        return Ok((folder.to_owned(), None));
    }
    let open = File::open(folder)?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd())), Some(open)))
}

/// One socket on any free port, for a role that has no agent: whoever publishes changes, or fetches a repository. Gives the port.
///
/// # Errors
/// If nothing can be listened on.
pub fn open_alone(folder: &Path) -> io::Result<u16> {
    let setup = Gateway {
        folder: folder.display().to_string(),
        port: None,
        forwards: Vec::new(),
        placeholder: String::new(),
        proxy: false,
        vendor: None,
        login: Login::Key,
        repository: None,
    };
    open(&setup).map(|opened| opened.port)
}

fn listen(port: u16) -> io::Result<StdTcpListener> {
    let listener = StdTcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        io::Error::new(error.kind(), format!("failed to listen on 127.0.0.1:{port}: {error}"))
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn serve(ports: Vec<(StdTcpListener, PathBuf)>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let accepting = ports.into_iter().filter_map(|(listener, socket)| {
        let listener = TcpListener::from_std(listener).ok()?;
        Some(tokio::spawn(accept(listener, socket.into(), Arc::clone(&room))))
    });
    for task in accepting.collect::<Vec<_>>() {
        // It never ends by itself.
        let _ = task.await;
    }
}

async fn accept(listener: TcpListener, socket: Arc<Path>, room: Arc<Semaphore>) {
    loop {
        let permit = Arc::clone(&room).acquire_owned().await.expect("nobody closes the semaphore");
        match listener.accept().await {
            Ok((stream, _)) => {
                let socket = Arc::clone(&socket);
                tokio::spawn(async move {
                    forward(stream, &socket).await;
                    drop(permit);
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// A connection that ends in an error has told both sides so by closing; there is nobody else to tell.
///
/// A broker that refuses a request by its head closes while the agent still sends. What it has answered is carried to the
/// agent all the same, and what the agent sends is read: closed with bytes unread, the connection would be reset, and the
/// answer lost.
async fn forward(mut inner: TcpStream, socket: &Path) {
    // A model's answer comes in many small pieces, each of which somebody waits for.
    let _ = inner.set_nodelay(true);
    let Some(mut broker) = connect(socket).await else { return };
    let (mut from_agent, mut to_agent) = inner.split();
    let (mut from_broker, mut to_broker) = broker.split();
    let mut answer = pin!(async {
        let copied = copy(&mut from_broker, &mut to_agent).await;
        let _ = to_agent.shutdown().await;
        copied.is_ok()
    });
    let mut request = pin!(async {
        if copy(&mut from_agent, &mut to_broker).await.is_ok() {
            let _ = to_broker.shutdown().await;
        } else {
            let _ = timeout(LINGER, copy(&mut from_agent, &mut sink())).await;
        }
    });
    tokio::select! {
        is_whole = &mut answer => {
            // Either side may be finished before the other; one that broke is not waited for.
            let patience = if is_whole { Duration::MAX } else { LINGER };
            let _ = timeout(patience, request).await;
        }
        () = &mut request => {
            answer.await;
        }
    }
}

/// A broker that is being restarted listens again soon, at the same path.
async fn connect(socket: &Path) -> Option<UnixStream> {
    let give_up_at = Instant::now() + BROKER_AWAY;
    loop {
        match UnixStream::connect(socket).await {
            Ok(stream) => return Some(stream),
            Err(_) if Instant::now() < give_up_at => sleep(LOOK_EVERY).await,
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn setup(folder: &Path, forwards: Vec<u16>) -> Gateway {
        Gateway {
            folder: folder.display().to_string(),
            port: None,
            forwards,
            placeholder: String::new(),
            proxy: true,
            vendor: None,
            login: Login::Key,
            repository: None,
        }
    }

    /// Answers every connection with its name and what it read, once the other side has finished writing.
    fn echo(folder: &Path, name: String) {
        let listener = UnixListener::bind(folder.join(&name)).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut read = String::new();
                stream.read_to_string(&mut read).unwrap();
                stream.write_all(format!("{name} {read}").as_bytes()).unwrap();
            }
        });
    }

    fn ask(port: u16, text: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn each_port_leads_to_its_own_socket() {
        let folder = tempfile::tempdir().unwrap();
        let free = StdTcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        echo(folder.path(), gateway::SOCKET.to_owned());
        echo(folder.path(), gateway::forward_socket(free));
        let opened = open(&setup(folder.path(), vec![free])).unwrap();
        assert_eq!(ask(opened.port, "hello"), "egress.sock hello");
        assert_eq!(ask(free, "hello"), format!("forward-{free}.sock hello"));
    }

    #[test]
    fn the_sockets_may_be_deeper_than_their_address_is_long() {
        let folder = tempfile::tempdir().unwrap();
        echo(folder.path(), gateway::SOCKET.to_owned());
        let deep = folder.path().join("a-folder-of-a-long-name".repeat(8));
        std::os::unix::fs::symlink(folder.path(), &deep).unwrap();
        let opened = open(&setup(&deep, Vec::new())).unwrap();
        assert_eq!(ask(opened.port, "hello"), "egress.sock hello");
    }

    #[test]
    fn a_connection_waits_for_a_broker_that_is_being_restarted() {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(&setup(folder.path(), Vec::new())).unwrap();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, opened.port)).unwrap();
        stream.write_all(b"early").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        echo(folder.path(), gateway::SOCKET.to_owned());
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "egress.sock early");
    }

    /// The broker answers by the head, and is gone with most of the request unread.
    #[test]
    fn an_answer_arrives_although_the_request_is_still_being_sent() {
        const ANSWER: &[u8] = b"HTTP/1.1 415 Unsupported Media Type\r\n\r\n";
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(gateway::SOCKET)).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.read_exact(&mut [0; 100]).unwrap();
                stream.write_all(ANSWER).unwrap();
            }
        });
        let opened = open(&setup(folder.path(), Vec::new())).unwrap();
        for _ in 0..200 {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, opened.port)).unwrap();
            // The rest is sent into a connection that may have ended.
            let _ = stream.write_all(&vec![b'x'; 1 << 20]);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert_eq!(answer, ANSWER);
        }
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let taken = StdTcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = open(&setup(folder.path(), vec![port])).unwrap_err();
        assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    }
}
