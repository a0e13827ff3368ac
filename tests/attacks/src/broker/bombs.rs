//! Requests to the model that are small on the wire and large in memory, many at once; and an honest program that calls
//! its model meanwhile.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use cofferdam_core::gateway;
use serde::{Deserialize, Serialize};

/// Longer than the broker lets a request wait for room.
const PATIENCE: Duration = Duration::from_secs(120);

/// What became of one kind of request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    /// The file's name.
    pub name: String,
    /// How many were answered with which status; 0 is none at all.
    pub statuses: BTreeMap<u16, usize>,
    /// How long all of them took.
    pub took_ms: u128,
}

/// What became of the honest program's calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// How many were answered as they should be.
    pub answered: usize,
    /// What the others were answered.
    pub failed: Vec<String>,
    /// The longest that one took.
    pub slowest_ms: u128,
}

/// Sends the bodies of a folder. A file's name is how often it is sent at a time, what it is, and its content-encoding:
/// `64-wide-gzip`. Prints a line for each, makes the file `over.thrown`, and holds on until `over` is there.
///
/// # Errors
/// If the folder cannot be read, or nothing can be printed.
pub fn bombs(folder: &Path, over: &Path) -> io::Result<()> {
    let mut files =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    for file in files {
        let body = std::fs::read(&file)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut parts = name.splitn(3, '-');
        let count = parts.next().and_then(|count| count.parse().ok()).unwrap_or(1);
        let encoding = parts.nth(1).unwrap_or("identity").to_owned();
        let (began, mut statuses) = (Instant::now(), BTreeMap::new());
        std::thread::scope(|scope| {
            let sent: Vec<_> = (0..count).map(|_| scope.spawn(|| post(&body, &encoding))).collect();
            for status in sent {
                let answer = status.join().ok().and_then(Result::ok).unwrap_or_default();
                *statuses.entry(status_of(&answer)).or_default() += 1;
            }
        });
        say(&Thrown { name, statuses, took_ms: began.elapsed().as_millis() })?;
    }
    std::fs::write(over.with_extension("thrown"), "")?;
    while !over.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Makes the file `over.calling`, calls the model until `over` is there, and prints what became of it.
///
/// # Errors
/// If the file cannot be made, or nothing can be printed.
pub fn calls(over: &Path) -> io::Result<()> {
    std::fs::write(over.with_extension("calling"), "")?;
    let mut called = Called { answered: 0, failed: Vec::new(), slowest_ms: 0 };
    let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    while !over.exists() {
        let began = Instant::now();
        match post(body, "identity") {
            Ok(answer) if status_of(&answer) == 200 => called.answered += 1,
            Ok(answer) => called.failed.push(answer),
            Err(error) => called.failed.push(error.to_string()),
        }
        called.slowest_ms = called.slowest_ms.max(began.elapsed().as_millis());
        std::thread::sleep(Duration::from_millis(20));
    }
    say(&called)
}

fn say(what: &impl Serialize) -> io::Result<()> {
    println!("{}", serde_json::to_string(what)?);
    io::stdout().flush()
}

fn status_of(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// The beginning of the answer.
fn post(body: &[u8], encoding: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, gateway::PORT))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST /model/anthropic/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Encoding: {encoding}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    // A request that is refused by its head is answered while it is sent.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.take(64 << 10).read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
