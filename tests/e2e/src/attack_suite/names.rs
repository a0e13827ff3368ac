//! A name server that an attacker runs: it answers what it likes, and differently the second time.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a name is answered with.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// These addresses.
    At(Vec<IpAddr>),
    /// Another name, which is answered too.
    Alias(&'static str, IpAddr),
}

/// The answers of each name, one after the other; the last one stays.
type Table = BTreeMap<&'static str, Vec<Answer>>;

/// A running name server.
pub(super) struct NameServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

const ADDRESS_V4: u16 = 1;
const ALIAS: u16 = 5;
const ADDRESS_V6: u16 = 28;

impl NameServer {
    /// Starts one on a free port of the loopback.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub(super) fn start(table: Table) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket");
        let address = socket.local_addr().expect("it is bound");
        let stop = Arc::<AtomicBool>::default();
        let (stopped, table) = (Arc::clone(&stop), Mutex::new(table));
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 1500];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, client)) = socket.recv_from(&mut buffer) else { continue };
                if let Some(answer) = answer(&buffer[..length], &table) {
                    let _ = socket.send_to(&answer, client);
                }
            }
        });
        Self { address, stop, thread: Some(thread) }
    }

    /// Where it listens.
    #[must_use]
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The answer to one question, as RFC 1035 has it; `None` if it is no question.
fn answer(question: &[u8], table: &Mutex<Table>) -> Option<Vec<u8>> {
    let (name, end) = read_name(question.get(12..)?)?;
    let asked = question.get(12..12 + end + 4)?;
    let kind = u16::from_be_bytes([asked[end], asked[end + 1]]);
    let records = records(&name, kind, table);
    let code: u8 = if records.is_none() { 3 } else { 0 };
    let records = records.unwrap_or_default();
    let count = u16::try_from(records.len()).ok()?.to_be_bytes();
    let mut message = question.get(..2)?.to_vec();
    message.extend([0x85, 0x80 | code, 0, 1, count[0], count[1], 0, 0, 0, 0]);
    message.extend(asked);
    message.extend(records.concat());
    Some(message)
}

/// The records of a name; `None` if there is no such name.
fn records(name: &str, kind: u16, table: &Mutex<Table>) -> Option<Vec<Vec<u8>>> {
    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
    let answers = table.get_mut(name)?;
    let current = answers.first()?.clone();
    // An address of the other family is asked for at the same time; the turn is that of version 4.
    if answers.len() > 1 && kind == ADDRESS_V4 {
        answers.remove(0);
    }
    let is_asked = |address: &IpAddr| if address.is_ipv4() { kind == ADDRESS_V4 } else { kind == ADDRESS_V6 };
    Some(match current {
        Answer::At(addresses) => addresses
            .iter()
            .filter(|address| is_asked(address))
            .map(|address| record(name, address))
            .collect(),
        Answer::Alias(other, address) => {
            let alias = resource(name, ALIAS, &write_name(other));
            std::iter::once(alias).chain(is_asked(&address).then(|| record(other, &address))).collect()
        }
    })
}

fn record(name: &str, address: &IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => resource(name, ADDRESS_V4, &address.octets()),
        IpAddr::V6(address) => resource(name, ADDRESS_V6, &address.octets()),
    }
}

/// Without a time to live: whoever resolves must ask again, as a rebinding attack would have it.
fn resource(name: &str, kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("short data").to_be_bytes();
    let kind = kind.to_be_bytes();
    [write_name(name).as_slice(), &kind, &[0, 1, 0, 0, 0, 0], &length, data].concat()
}

fn write_name(name: &str) -> Vec<u8> {
    let label = |label: &str| {
        let length = u8::try_from(label.len()).expect("a short label");
        std::iter::once(length).chain(label.bytes()).collect::<Vec<u8>>()
    };
    name.split('.').flat_map(label).chain([0]).collect()
}

/// A name, and where it ends.
fn read_name(bytes: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        let label = bytes.get(at + 1..at + 1 + length)?;
        at += 1 + length;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
    }
}
