//! A server of pages on the loopback, which an operator has to list before anything is fetched from it.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What is sent as an answer: the head, and a part that comes so often.
pub(crate) struct Page {
    head: String,
    part: Vec<u8>,
    times: usize,
}

impl Page {
    /// A page of HTML.
    pub(crate) fn html(text: &str) -> Self {
        Self::packed(text.as_bytes().to_vec(), "Content-Type: text/html")
    }

    /// The same with headers of its own.
    pub(crate) fn packed(bytes: Vec<u8>, headers: &str) -> Self {
        let length = bytes.len();
        Self { head: format!("{headers}\r\nContent-Length: {length}\r\n"), part: bytes, times: 1 }
    }

    /// A page that says that it is so long, of which no more than its beginning comes.
    pub(crate) fn announced(length: u64) -> Self {
        let head = format!("Content-Type: text/html\r\nContent-Length: {length}\r\n");
        Self { head, part: b"<p>".to_vec(), times: 1 }
    }

    /// A page that does not say how long it is: a part that comes so often.
    pub(crate) fn long(part: &str, times: usize) -> Self {
        Self { head: "Content-Type: text/html\r\n".to_owned(), part: part.as_bytes().to_vec(), times }
    }

    /// Whoever asked may leave in the middle.
    fn send(&self, to: &mut TcpStream) -> std::io::Result<()> {
        write!(to, "HTTP/1.1 200 OK\r\nConnection: close\r\n{}\r\n", self.head)?;
        (0..self.times).try_for_each(|_| to.write_all(&self.part))
    }
}

/// A server, until it is dropped.
pub(crate) struct Pages {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Pages {
    /// Answers each path with what this says of it.
    pub(crate) fn start(page: impl Fn(&str) -> Page + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a socket has an address");
        let is_over = Arc::<AtomicBool>::default();
        let until = Arc::clone(&is_over);
        let serving = std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if until.load(Ordering::SeqCst) {
                    return;
                }
                answer(connection, &page);
            }
        });
        Self { address, is_over, serving: Some(serving) }
    }

    /// What an operator lists.
    pub(crate) fn listed(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn answer(mut connection: TcpStream, page: &impl Fn(&str) -> Page) {
    let mut lines = BufReader::new(&connection).lines();
    let Some(Ok(first)) = lines.next() else { return };
    for line in lines {
        match line {
            Ok(line) if line.is_empty() => break,
            Ok(_) => {}
            Err(_) => return,
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let _ = page(path).send(&mut connection);
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // It waits for the next connection.
        let _ = TcpStream::connect(self.address);
        let ended = self.serving.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the server panicked");
    }
}
