//! Small servers on the loopback.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

/// Sends back what it gets.
pub(crate) async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
        }
    });
    address
}

/// Sends without end to whoever connects.
pub(crate) async fn endless() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move { while stream.write_all(&[b'x'; 65536]).await.is_ok() {} });
        }
    });
    address
}

/// An HTTP server that gives one answer to everything and keeps the requests it saw.
#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Web {
    pub(crate) async fn start(answer: &str) -> Self {
        Self::start_at("127.0.0.1", answer).await
    }

    /// The same at an address of this machine.
    pub(crate) async fn start_at(address: &str, answer: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let web = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let (seen, answer) = (Arc::clone(&web.seen), answer.to_owned());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), answer.clone());
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let mut request = String::new();
                    while !request.ends_with("\r\n\r\n") {
                        if stream.read_line(&mut request).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let length = request
                        .lines()
                        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
                        .unwrap_or(0);
                    let mut body = vec![0; length];
                    if stream.read_exact(&mut body).await.is_err() {
                        return;
                    }
                    request.push_str(&String::from_utf8_lossy(&body));
                    seen.lock().unwrap().push(request);
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        web
    }

    /// What was asked so far.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}
