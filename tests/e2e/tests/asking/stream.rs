//! An answer while it is made, on both databases.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use cofferdam_api::sse::{Frame, Reader};
use cofferdam_e2e::Database;
use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;
use serde_json::Value;

use super::stage::{KEY, Stage};

#[once]
#[test]
fn an_answer_is_streamed_and_read_again_on_sqlite() {
    streamed_and_read_again(None);
}

#[once]
#[test]
fn an_answer_is_streamed_and_read_again_on_postgresql() {
    let Some(database) = Database::create() else { return };
    streamed_and_read_again(Some(database));
}

fn streamed_and_read_again(database: Option<Database>) {
    let said = "The answer is four, and it was never in doubt.";
    // Half of it is said before somebody lets the model go on.
    let script = Script::new([Answer::text(said).held_after(6, "go")]).expecting_key(KEY);
    let stage = Stage::on(database, script, &[("ANTHROPIC_API_KEY", KEY)]);
    let mut stream = Stream::post(&stage, r#"{"prompt": "What is 2 + 2?", "options": {"stream": true}}"#);

    let start = stream.until("start");
    let run = data(&start)["run_id"].as_str().expect("a run").to_owned();
    let piece = stream.until("text_delta");
    let shown = data(&piece)["text"].as_str().expect("a text").to_owned();
    assert!(piece.id.is_none() && said.starts_with(&shown) && shown.len() < said.len(), "{shown}");
    stage.model.release("go");
    let whole = stream.until("text");
    assert_eq!(data(&whole)["text"], said);
    let seen = whole.id.expect("a whole block is on record");
    let result = data(&stream.until("result"));
    assert_eq!((&result["success"], &result["result"]), (&Value::Bool(true), &Value::from(said)));

    // Whoever was cut off misses none of what was whole, and gets the same end.
    let mut again = Stream::get(&stage, &run, seen);
    let mut kinds = Vec::new();
    let end = loop {
        let frame = again.next();
        assert!(frame.id.is_none_or(|id| id > seen), "{frame:?}");
        kinds.push(frame.event.clone().unwrap_or_default());
        if kinds.last().is_some_and(|kind| kind == "result") {
            break data(&frame);
        }
    };
    assert!(!kinds.contains(&"text".to_owned()), "{kinds:?}");
    assert_eq!((&end["messages"], &end["metadata"]), (&result["messages"], &result["metadata"]));
    assert_eq!(stage.model.calls(), 1);
    stage.service.stop();
}

fn data(frame: &Frame) -> Value {
    serde_json::from_str(&frame.data).expect("a frame is JSON")
}

/// `curl --no-buffer`, frame by frame.
struct Stream {
    curl: Child,
    lines: Box<dyn Iterator<Item = String>>,
    reader: Reader,
}

impl Stream {
    fn post(stage: &Stage, body: &str) -> Self {
        Self::of(stage, "/execute/sdk", &["-H", "Content-Type: application/json", "-d", body])
    }

    fn get(stage: &Stage, run: &str, after: u64) -> Self {
        let last = format!("Last-Event-ID: {after}");
        Self::of(stage, &format!("/execute/sdk/{run}"), &["-H", "Accept: text/event-stream", "-H", &last])
    }

    fn of(stage: &Stage, path: &str, flags: &[&str]) -> Self {
        let mut curl = Command::new("curl")
            .args(["--silent", "--show-error", "--no-buffer", "--max-time", "60"])
            .args(["-H", &format!("X-API-Key: {}", stage.service.key())])
            .args(flags)
            .arg(format!("{}{path}", stage.service.url()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("curl is installed");
        let out = BufReader::new(curl.stdout.take().expect("it was piped"));
        let lines = out.lines().map(|line| line.expect("frames are text") + "\n");
        Self { curl, lines: Box::new(lines), reader: Reader::default() }
    }

    fn next(&mut self) -> Frame {
        loop {
            let line = self.lines.next().expect("the stream goes on");
            let frames = self.reader.take(line.as_bytes()).expect("frames");
            if let Some(frame) = frames.into_iter().next() {
                return frame;
            }
        }
    }

    fn until(&mut self, kind: &str) -> Frame {
        loop {
            let frame = self.next();
            if frame.event.as_deref() == Some(kind) {
                return frame;
            }
            assert_ne!(frame.event.as_deref(), Some("error"), "{frame:?}");
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.curl.kill();
        let _ = self.curl.wait();
    }
}
