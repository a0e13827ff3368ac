//! What is outside of a sandbox whose only way out is the broker: a server that is listed, a canary that nobody
//! may reach, a model that repeats what it was sent, and a name server in the attacker's hands.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::names::{Answer, NameServer};
use crate::Fixture;

/// The model's key.
pub const KEY: &str = "sk-ant-the-key-that-nobody-inside-may-see";

/// Every name that is listed, at the canary's port.
pub const NAMES: [&str; 9] = [
    "allowed.test",
    "both.test",
    "rebound.test",
    "loopback.test",
    "metadata.test",
    "private.test",
    "alias.test",
    "six.test",
    "mapped.test",
];

/// Everything that is outside.
pub struct Outside {
    /// A server at 127.0.0.2 that is listed.
    pub allowed: Server,
    /// A server at 127.0.0.1, with the same port, that is not.
    pub canary: Server,
    /// The model.
    pub model: Server,
    names: NameServer,
}

impl Outside {
    /// Starts it all.
    ///
    /// # Panics
    /// If no port is free.
    #[must_use]
    pub fn start() -> Self {
        let (canary, allowed) = same_port();
        let port = canary.local_addr().expect("it is bound").port();
        let redirect =
            format!("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n");
        let model = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self {
            canary: Server::start(canary, |_| answer("text/plain", "the canary")),
            allowed: Server::start(allowed, move |request| {
                if request.starts_with("GET /to-the-canary ") {
                    redirect.clone()
                } else {
                    answer("text/plain", "the listed server")
                }
            }),
            model: Server::start(model, repeat),
            names: NameServer::start(table()),
        }
    }

    /// The port of the canary and of the server that is listed.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.canary.address.port()
    }

    /// Tells a fixture of the model and the name server.
    ///
    /// # Panics
    /// If the settings cannot be written.
    pub fn tell(&self, fixture: &mut Fixture) {
        for vendor in ["ANTHROPIC", "OPENAI"] {
            fixture.set_env(&format!("{vendor}_API_KEY"), KEY);
            fixture.set_env(&format!("{vendor}_BASE_URL"), &format!("http://{}", self.model.address));
        }
        let settings = json!({ "egress": { "name_servers": [self.names.address()] } });
        std::fs::create_dir_all(fixture.state()).expect("a new folder");
        std::fs::write(fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
    }
}

fn table() -> BTreeMap<&'static str, Vec<Answer>> {
    let at = |addresses: &[&str]| {
        Answer::At(addresses.iter().map(|address| address.parse().expect("an address")).collect())
    };
    let loopback = "127.0.0.1".parse().expect("an address");
    BTreeMap::from([
        ("allowed.test", vec![at(&["127.0.0.2"])]),
        ("both.test", vec![at(&["127.0.0.1", "127.0.0.2"])]),
        ("rebound.test", vec![at(&["127.0.0.2"]), at(&["127.0.0.1"])]),
        ("loopback.test", vec![at(&["127.0.0.1"])]),
        ("metadata.test", vec![at(&["169.254.169.254"])]),
        ("private.test", vec![at(&["10.0.0.1", "192.168.0.1", "172.16.0.1"])]),
        ("alias.test", vec![Answer::Alias("localhost", loopback)]),
        ("six.test", vec![at(&["::1"])]),
        ("mapped.test", vec![at(&["::ffff:127.0.0.1"])]),
    ])
}

/// A server that keeps what it was asked.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// The thread ends with the test's process.
    fn start(listener: TcpListener, answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let (kept, answer) = (Arc::clone(&seen), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &kept, &*answer));
            }
        });
        Self { address, seen }
    }

    /// What it was asked so far, and an empty text for each connection that asked nothing.
    #[must_use]
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<String>>, answer: &dyn Fn(&str) -> String) {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") && stream.read_line(&mut request).unwrap_or(0) > 0 {}
    let length = request.to_ascii_lowercase();
    let length = length.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    let _ = stream.read_exact(&mut body);
    let reply = answer(&request);
    request.push_str(&String::from_utf8_lossy(&body));
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    let _ = stream.get_mut().write_all(reply.as_bytes());
}

/// An answer of the model's that repeats the request's head, key and all.
fn repeat(request: &str) -> String {
    let usage = if request.starts_with("POST /v1/chat/") {
        json!({"prompt_tokens": 1, "completion_tokens": 1})
    } else {
        json!({"input_tokens": 1, "output_tokens": 1})
    };
    let body = json!({
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": request}], "object": "response", "output": [], "choices": [],
        "usage": usage,
    });
    let answer = answer("application/json", &body.to_string());
    answer.replacen("\r\n", &format!("\r\nX-Key: {KEY}\r\nSet-Cookie: a={KEY}\r\n"), 1)
}

fn answer(content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Two addresses with the same port, so that only the address tells them apart.
fn same_port() -> (TcpListener, TcpListener) {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = first.local_addr().expect("it is bound").port();
        if let Ok(second) = TcpListener::bind(("127.0.0.2", port)) {
            return (first, second);
        }
    }
}
