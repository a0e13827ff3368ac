//! Everything the agent printed, put together again from the worker's lines: byte for byte, but for secrets.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_core::{EventType, FromWorker, Redactor, worker_line};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// No line of a worker is longer.
const LONGEST_LINE: u64 = 8 << 20;

/// Writes the transcript from the worker's output, read from its beginning.
pub(super) async fn write(
    stdout: impl AsyncRead + Unpin,
    path: &Path,
    redactor: &Redactor,
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(32 << 10, stdout);
    let mut writer = BufWriter::new(File::create(path)?);
    // One stream over all pieces: a secret may lie across the place where a line was cut.
    let mut redacted = redactor.stream();
    let mut line = Vec::new();
    while (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line).await? > 0 {
        if let Some(piece) = std::str::from_utf8(&line).ok().and_then(|text| FromWorker::parse(text).ok()) {
            writer.write_all(&redacted.push(&content(&piece)))?;
        }
        line.clear();
    }
    writer.write_all(&redacted.finish())?;
    writer.flush()
}

/// What the agent printed, as far as it is in this line.
fn content(line: &FromWorker) -> Vec<u8> {
    let is_rest = line.line_type == worker_line::OUTPUT_REST;
    let is_output =
        matches!(EventType::parse(&line.line_type), Some(EventType::AgentMessage | EventType::AgentStderr));
    if !is_rest && !is_output {
        return Vec::new();
    }
    let data = &line.data;
    let text = |name: &str| data.get(name).and_then(Value::as_str);
    let mut bytes = match text("base64").and_then(|encoded| STANDARD.decode(encoded).ok()) {
        Some(bytes) => bytes,
        None => text("text").unwrap_or_default().as_bytes().to_vec(),
    };
    let is = |name: &str| data.get(name).and_then(Value::as_bool).unwrap_or(false);
    // A line that was cut goes on in the next pieces; the last of them ends it.
    if if is_rest { is("last") } else { !is("cut") } {
        bytes.push(b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn a_line_that_was_cut_is_whole_again() {
        let line = |seq: u64, kind: &str, data: Value| {
            json!({ "v": 1, "seq": seq, "at": 0, "type": kind, "data": data }).to_string() + "\n"
        };
        let text = [
            line(1, "agent.message", json!({ "text": "one" })),
            line(2, "agent.message", json!({ "text": "lo", "cut": true })),
            line(3, worker_line::OUTPUT_REST, json!({ "stream": "stdout", "text": "ng " })),
            line(4, worker_line::OUTPUT_REST, json!({ "stream": "stdout", "base64": "/w==", "last": true })),
            line(5, "heartbeat", json!({})),
            line(6, "agent.stderr", json!({ "text": "\u{fffd}", "base64": "gA==" })),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript");
        write(io::Cursor::new(text.concat().into_bytes()), &path, &Redactor::default()).await.unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"one\nlong \xff\n\x80\n");
    }

    #[tokio::test]
    async fn a_secret_across_the_cut_is_redacted() {
        let line = |seq: u64, kind: &str, data: Value| {
            json!({ "v": 1, "seq": seq, "at": 0, "type": kind, "data": data }).to_string() + "\n"
        };
        let text = [
            line(1, "agent.message", json!({ "text": "a hush-", "cut": true })),
            line(2, worker_line::OUTPUT_REST, json!({ "stream": "stdout", "text": "hu" })),
            line(3, worker_line::OUTPUT_REST, json!({ "stream": "stdout", "base64": "c2gh", "last": true })),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript");
        let redactor = Redactor::default().with(["hush-hush!"]);
        write(io::Cursor::new(text.concat().into_bytes()), &path, &redactor).await.unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"a [redacted]\n");
    }
}
