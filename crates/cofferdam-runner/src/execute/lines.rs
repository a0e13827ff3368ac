//! The worker's lines, in batches.
//!
//! An agent that prints 50,000 lines must not cost 50,000 commits. So whatever has arrived while the last
//! batch was stored makes the next one.

use cofferdam_core::{
    EventType, FromWorker, MessageReceipt, NewEvent, NumberedSeal, PhaseOutput, Receipt, WorkerExited,
    worker_line,
};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::sync::mpsc;

use super::phases::Place;
use crate::node::now_ms;

/// No line of a worker is longer: 1 MiB of text with every character escaped, and its frame.
const LONGEST_LINE: u64 = 8 << 20;
/// A batch is closed at this many lines or bytes, so that neither a transaction nor memory grows without
/// end.
const BATCH_LINES: usize = 1_000;
const BATCH_BYTES: usize = 2 << 20;
/// Batches that may wait: one is being stored, one is ready, one is being read.
const BATCHES: usize = 2;

/// What a line means to the attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    /// To be stored.
    Event(NewEvent),
    /// The measured seal, and the number of its line.
    Seal(Box<NumberedSeal>, u64),
    /// What a try of a phase brought, by the worker's reckoning.
    Phase(Box<PhaseOutput>, Place),
    /// The last line.
    Exited(WorkerExited, Place),
    /// What became of a message.
    Receipt(MessageReceipt),
}

/// Reads the worker's lines in a task of its own until its output ends.
pub(super) fn read(stdout: impl AsyncRead + Send + Unpin + 'static) -> mpsc::Receiver<Vec<Line>> {
    let (sender, receiver) = mpsc::channel(BATCHES);
    tokio::spawn(async move {
        let mut reader = BufReader::with_capacity(64 << 10, stdout);
        let mut batch = Batch::default();
        loop {
            let mut bytes = Vec::new();
            match (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut bytes).await {
                Ok(0) | Err(_) => break,
                Ok(_) => batch.add(&bytes),
            }
            let more = reader.buffer().contains(&b'\n');
            if (!more || batch.is_full())
                && !batch.lines.is_empty()
                && sender.send(batch.take()).await.is_err()
            {
                return;
            }
        }
        if !batch.lines.is_empty() {
            let _ = sender.send(batch.take()).await;
        }
    });
    receiver
}

#[derive(Default)]
struct Batch {
    lines: Vec<Line>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.lines.extend(parse(bytes));
    }

    fn is_full(&self) -> bool {
        self.lines.len() >= BATCH_LINES || self.bytes >= BATCH_BYTES
    }

    fn take(&mut self) -> Vec<Line> {
        self.bytes = 0;
        std::mem::take(&mut self.lines)
    }
}

/// A line that is not ours is kept as a `log` event: nothing that was printed is lost.
pub(crate) fn parse(bytes: &[u8]) -> Option<Line> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return None;
    }
    let Ok(line) = FromWorker::parse(text) else { return Some(stray(text)) };
    let place = Place { seq: line.seq, at_ms: line.at };
    let known = match line.line_type.as_str() {
        worker_line::STARTED | worker_line::OUTPUT_REST => return None,
        worker_line::SEAL => {
            serde_json::from_value(line.data).ok().map(|seal| Line::Seal(Box::new(seal), line.seq))
        }
        worker_line::EXITED => {
            serde_json::from_value(line.data).ok().map(|exited| Line::Exited(exited, place))
        }
        name if name == EventType::PhaseOutput.as_str() => {
            serde_json::from_value(line.data).ok().map(|output| Line::Phase(Box::new(output), place))
        }
        // Whether a phase has passed is for us to say.
        name if name == EventType::PhasePassed.as_str() || name == EventType::PhaseFailed.as_str() => None,
        name => EventType::parse(name).and_then(|event_type| {
            let Some(receipt) = Receipt::of_event(event_type, &line.data) else {
                let (at_ms, worker_seq) = (line.at, Some(line.seq));
                return Some(Line::Event(NewEvent { at_ms, event_type, worker_seq, data: line.data }));
            };
            let id = line.data.get("id")?.as_str()?.to_owned();
            Some(Line::Receipt(MessageReceipt { id, receipt }))
        }),
    };
    Some(known.unwrap_or_else(|| stray(text)))
}

fn stray(text: &str) -> Line {
    let data = json!({ "text": text, "note": "not a line of the worker protocol" });
    Line::Event(NewEvent::new(now_ms(), EventType::Log, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64, line_type: &str, data: &serde_json::Value) -> String {
        json!({ "v": 1, "seq": seq, "at": 5, "type": line_type, "data": data }).to_string()
    }

    #[tokio::test]
    async fn many_lines_arrive_in_few_batches_and_in_order() {
        let text: String =
            (1..=5_000).map(|n| line(n, "agent.message", &json!({ "text": n })) + "\n").collect();
        let mut batches = read(std::io::Cursor::new(text.into_bytes()));
        let (mut count, mut next) = (0, 1);
        while let Some(batch) = batches.recv().await {
            count += 1;
            for line in batch {
                let Line::Event(event) = line else { panic!("{line:?}") };
                assert_eq!(event.worker_seq, Some(next));
                next += 1;
            }
        }
        assert_eq!(next, 5_001);
        assert!(count < 50, "{count} batches");
    }

    #[test]
    fn a_line_that_is_not_the_workers_is_kept_as_a_log() {
        for text in [
            "hello",
            "{}",
            r#"{"v":9,"seq":1,"at":1,"type":"log","data":{}}"#,
            &line(1, "run.finished!", &json!({})),
            &line(1, "phase.passed", &json!({ "phase": "design", "number": 1 })),
            &line(1, "phase.failed", &json!({ "phase": "design", "number": 1 })),
            &line(1, "phase.output", &json!({ "phase": "a phase" })),
        ] {
            let Some(Line::Event(event)) = parse(text.as_bytes()) else { panic!("{text}") };
            assert_eq!((event.event_type, event.worker_seq), (EventType::Log, None), "{text}");
        }
    }

    #[test]
    fn the_last_line_is_recognised() {
        let exited = line(9, worker_line::EXITED, &json!({ "end": { "how": "exited", "code": 3 } }));
        let end = cofferdam_core::AgentEnd::Exited { code: 3 };
        assert_eq!(
            parse(exited.as_bytes()),
            Some(Line::Exited(WorkerExited { end, report: None }, Place { seq: 9, at_ms: 5 }))
        );
    }
}
