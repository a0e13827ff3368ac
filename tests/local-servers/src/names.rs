//! A name server on the loopback that answers from a table, which may change between two questions.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use hickory_resolver::proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tokio::net::UdpSocket;

type Table = Arc<Mutex<HashMap<String, Vec<Vec<IpAddr>>>>>;

/// A running name server.
pub struct NameServer {
    address: SocketAddr,
    table: Table,
    task: tokio::task::JoinHandle<()>,
}

impl NameServer {
    /// Starts a server that knows no name.
    ///
    /// # Panics
    /// If there is no port left.
    pub async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("a socket has an address");
        let table = Table::default();
        let task = tokio::spawn(serve(socket, Arc::clone(&table)));
        Self { address, table, task }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers a name with these addresses.
    ///
    /// # Panics
    /// If one of them is no address.
    pub fn set(&self, name: &str, addresses: &[&str]) {
        self.set_sequence(name, &[addresses]);
    }

    /// Answers a name with the first list once, then with the second, and so on; the last one stays.
    ///
    /// # Panics
    /// If one of them is no address.
    pub fn set_sequence(&self, name: &str, answers: &[&[&str]]) {
        let answers =
            answers.iter().map(|list| list.iter().map(|text| text.parse().expect("an address")).collect());
        self.table
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(format!("{name}."), answers.collect());
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: UdpSocket, table: Table) {
    let mut buffer = [0; 1500];
    while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
        let Ok(question) = Message::from_vec(&buffer[..length]) else { continue };
        let answer = answer(&question, &table).to_vec().expect("an answer that was just made");
        let _ = socket.send_to(&answer, client).await;
    }
}

fn answer(question: &Message, table: &Table) -> Message {
    let mut answer = Message::new(question.metadata.id, MessageType::Response, OpCode::Query);
    answer.metadata.recursion_desired = true;
    answer.metadata.recursion_available = true;
    for query in &question.queries {
        answer.add_query(query.clone());
        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(answers) = table.get_mut(&query.name().to_ascii()) else {
            answer.metadata.response_code = ResponseCode::NXDomain;
            continue;
        };
        let addresses = answers[0].clone();
        // An address of the other family is asked for at the same time; the turn is that of IPv4.
        if answers.len() > 1 && query.query_type() == RecordType::A {
            answers.remove(0);
        }
        for address in addresses {
            let data = match (address, query.query_type()) {
                (IpAddr::V4(address), RecordType::A) => RData::A(A(address)),
                (IpAddr::V6(address), RecordType::AAAA) => RData::AAAA(AAAA(address)),
                _ => continue,
            };
            // No time to live: the resolver must ask again, as a rebinding attack would have it.
            answer.add_answer(Record::from_rdata(query.name().clone(), 0, data));
        }
    }
    answer
}
