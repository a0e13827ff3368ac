//! Sends bytes, and says what came back.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use cofferdam_core::{gateway, inside};
use serde::{Deserialize, Serialize};

use super::{BrokerAttempt, BrokerTarget};
use crate::errno;

/// An answer that does not come is one, too.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is kept of an answer.
const KEPT: usize = 8 << 10;

/// What came back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answered {
    /// The attempt.
    pub name: String,
    /// All that was answered, or the name of the error.
    pub answer: String,
}

impl Answered {
    fn new(name: &str, answer: io::Result<Vec<u8>>) -> Self {
        let answer = match answer {
            Ok(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT)]).into_owned(),
            Err(error) => errno::name(errno::of(&error)),
        };
        Self { name: name.to_owned(), answer }
    }
}

/// Makes an attempt by the gateway.
#[must_use]
pub fn ask(attempt: &BrokerAttempt) -> Answered {
    let answer = by_gateway(&attempt.wire).and_then(|answer| match location(&answer) {
        Some(next) if attempt.follows => by_gateway(&get(&next)),
        _ => Ok(answer),
    });
    Answered::new(attempt.name, answer)
}

/// The same at a Unix socket.
fn ask_socket(name: &str, socket: &Path, wire: &[u8]) -> Answered {
    // By its folder, since a socket's path has an end at 108 bytes.
    let connected = socket.parent().zip(socket.file_name()).ok_or(io::ErrorKind::InvalidInput.into());
    let connected = connected.and_then(|(folder, file)| {
        let folder = std::fs::File::open(folder)?;
        UnixStream::connect(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(file))
    });
    Answered::new(name, connected.and_then(|stream| exchange(stream, wire)))
}

/// Goes past the gateway: to the sockets themselves, and to the host's own ports.
#[must_use]
pub fn around(target: &BrokerTarget) -> Vec<Answered> {
    let canary = format!("127.0.0.1:{}", target.port);
    let connect = format!("CONNECT {canary} HTTP/1.1\r\nHost: {canary}\r\n\r\n");
    let own = Path::new(inside::EGRESS).join(gateway::SOCKET);
    let direct = |port| {
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, port).into();
        let stream = TcpStream::connect_timeout(&address, PATIENCE);
        stream.and_then(|stream| exchange(stream, &get(&format!("http://{address}/"))))
    };
    vec![
        ask_socket("own_socket", &own, connect.as_bytes()),
        ask_socket("socket_of_another_run", &target.other_socket, connect.as_bytes()),
        Answered::new("canary_directly", direct(target.port)),
        Answered::new("model_directly", direct(target.model_port)),
        // It leads to its one target, whatever is asked for.
        Answered::new("forward", direct(target.forward_port)),
    ]
}

fn by_gateway(wire: &[u8]) -> io::Result<Vec<u8>> {
    exchange(TcpStream::connect((Ipv4Addr::LOCALHOST, gateway::PORT))?, wire)
}

fn get(url: &str) -> Vec<u8> {
    let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into_bytes()
}

fn location(answer: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(answer);
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    })
}

/// A stream of either kind.
trait Stream: Read + Write {
    fn be_patient(&self) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn be_patient(&self) -> io::Result<()> {
        self.set_read_timeout(Some(PATIENCE))
    }
}

impl Stream for UnixStream {
    fn be_patient(&self) -> io::Result<()> {
        self.set_read_timeout(Some(PATIENCE))
    }
}

fn exchange(mut stream: impl Stream, wire: &[u8]) -> io::Result<Vec<u8>> {
    stream.be_patient()?;
    stream.write_all(wire)?;
    let mut answer = Vec::new();
    if wire.starts_with(b"CONNECT ") {
        read_head(&mut stream, &mut answer)?;
        if answer.starts_with(b"HTTP/1.1 200") {
            stream.write_all(&get("http://tunnel/"))?;
        }
    }
    match stream.read_to_end(&mut answer) {
        // What came before the connection broke is an answer.
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(answer),
    }
}

fn read_head(stream: &mut impl Read, answer: &mut Vec<u8>) -> io::Result<()> {
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        answer.push(byte[0]);
    }
    Ok(())
}
