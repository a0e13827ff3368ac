//! The worker's own lines on stdout: numbered, one JSON object each.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use cofferdam_core::FromWorker;
use rustix::io::fcntl_dupfd_cloexec;
use serde::Serialize;

/// Enough for a few hundred ordinary lines at a time: an agent that prints quickly costs one write per
/// batch and not one per line.
const BATCH_BYTES: usize = 256 << 10;

/// Writes lines and numbers them. There is one, and one thread has it, so no line can cut another.
pub(crate) struct LineWriter<W: Write> {
    to: BufWriter<W>,
    line: Vec<u8>,
    last_seq: u64,
}

#[derive(Serialize)]
struct Line<'a, T> {
    v: u32,
    seq: u64,
    at: u64,
    #[serde(rename = "type")]
    line_type: &'a str,
    data: &'a T,
}

impl LineWriter<File> {
    /// A writer to this process's stdout, without the standard library's flush after each line.
    pub(crate) fn to_stdout() -> io::Result<Self> {
        Ok(Self::new(File::from(fcntl_dupfd_cloexec(io::stdout(), 3)?)))
    }
}

impl<W: Write> LineWriter<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to: BufWriter::with_capacity(BATCH_BYTES, to), line: Vec::new(), last_seq: 0 }
    }

    /// Writes one line. It may stay in the batch until [`Self::flush`].
    pub(crate) fn emit(&mut self, line_type: &str, data: &impl Serialize) -> io::Result<()> {
        self.last_seq += 1;
        self.line.clear();
        let line = Line { v: FromWorker::VERSION, seq: self.last_seq, at: now_ms(), line_type, data };
        serde_json::to_writer(&mut self.line, &line)?;
        self.line.push(b'\n');
        self.to.write_all(&self.line)?;
        // A single huge line must not keep its memory for the rest of the run.
        self.line.shrink_to(BATCH_BYTES);
        Ok(())
    }

    /// Hands everything to the host.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Milliseconds since the epoch. The only place where the worker reads the real clock; what it waits
/// for is measured with the monotonic one.
fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_numbered_from_one_and_read_back() {
        let mut written = Vec::new();
        let mut writer = LineWriter::new(&mut written);
        writer.emit("log", &json!({ "text": "a\nb" })).unwrap();
        writer.emit("heartbeat", &json!({})).unwrap();
        writer.flush().unwrap();
        drop(writer);
        let text = String::from_utf8(written).unwrap();
        let lines: Vec<_> = text.lines().map(|line| FromWorker::parse(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].seq, lines[1].seq), (1, 2));
        assert_eq!(lines[0].data, json!({ "text": "a\nb" }));
        assert!(lines[0].at > 1_700_000_000_000);
    }
}
