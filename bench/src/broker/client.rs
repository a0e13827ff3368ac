//! The agent's side: connections that ask the model over and over.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};

use super::server::PIECES;

/// Where a client connects to.
#[derive(Clone)]
pub(super) enum Way {
    /// To the model's server, or to the gateway of a sandbox.
    Tcp(u16),
    /// To the broker's socket.
    Unix(PathBuf),
}

/// What is asked.
#[derive(Clone)]
pub(super) struct Question {
    pub(super) path: &'static str,
    pub(super) body: Bytes,
    /// How many pieces the answer has.
    pub(super) pieces: usize,
}

impl Question {
    /// A request of about this many bytes.
    pub(super) fn new(path: &'static str, bytes: usize, pieces: usize) -> Self {
        let line = "the quick brown fox jumps over the lazy dog and runs into the \\\"woods\\\"\\n";
        let text = line.repeat(bytes.div_ceil(line.len()));
        let body = format!(
            "{{\"model\":\"claude-sonnet-4-5\",\"max_tokens\":4096,\"stream\":true,\"messages\":\
             [{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}]}}"
        );
        Self { path, body: body.into(), pieces }
    }
}

/// A connection that is kept.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

/// How one call went.
pub(super) struct Call {
    /// Until the first byte of the answer's body.
    pub(super) first: Duration,
    pub(super) whole: Duration,
    pub(super) bytes: usize,
}

impl Connection {
    pub(super) async fn open(way: &Way) -> anyhow::Result<Self> {
        let sender = match way {
            Way::Tcp(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port)).await?;
                stream.set_nodelay(true)?;
                let (sender, connection) = handshake(TokioIo::new(stream)).await?;
                tokio::spawn(connection);
                sender
            }
            Way::Unix(path) => {
                let (sender, connection) = handshake(TokioIo::new(UnixStream::connect(path).await?)).await?;
                tokio::spawn(connection);
                sender
            }
        };
        Ok(Self { sender })
    }

    /// Asks, and reads the answer to its end.
    pub(super) async fn call(&mut self, question: &Question) -> anyhow::Result<Call> {
        let started = Instant::now();
        let request = Request::post(question.path)
            .header("host", "127.0.0.1")
            .header("x-api-key", "placeholder")
            .header("content-type", "application/json")
            .header(PIECES, format!("pieces-{}", question.pieces))
            .body(Full::new(question.body.clone()))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await.context("no answer")?;
        ensure!(response.status() == 200, "the answer is {}", response.status());
        let mut body = response.into_body();
        let (mut first, mut bytes, mut last) = (None, 0, Bytes::new());
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                first.get_or_insert_with(|| started.elapsed());
                bytes += data.len();
                last = data;
            }
        }
        ensure!(last.ends_with(b"\"message_stop\"}\n\n"), "the answer was cut");
        Ok(Call { first: first.unwrap_or_default(), whole: started.elapsed(), bytes })
    }
}
