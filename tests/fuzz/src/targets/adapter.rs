//! The adapters of the agents' CLIs. The input is what a CLI prints; a line that begins with `>` is a message
//! to it (`>steer text`), and one that begins with `!` goes to its stderr.

use std::collections::BTreeMap;

use cofferdam_agent::{Context, Message, ModelRoute, Step, Stream, for_work};
use cofferdam_core::{Agent, AttemptRef, Login, MessageKind, PromptSetup, Vendor, Work};

/// What all facts of one line may hold, as a multiple of the line: texts are quoted once more at most.
const MOST_PER_BYTE: usize = 16;

pub(crate) fn feed_claude_code(input: &[u8]) {
    feed(&Work::Agent { agent: Agent::ClaudeCode, setup: setup() }, input);
}

pub(crate) fn feed_codex(input: &[u8]) {
    feed(&Work::Agent { agent: Agent::Codex, setup: setup() }, input);
}

pub(crate) fn feed_opencode(input: &[u8]) {
    feed(&Work::Agent { agent: Agent::OpenCode, setup: setup() }, input);
}

fn feed(setup: &Work, input: &[u8]) {
    let attempt =
        AttemptRef { run: "run_00000000000000000000000000".parse().expect("a run's id"), number: 1 };
    let route = ModelRoute {
        gateway_url: "http://127.0.0.1:3128",
        placeholder: "placeholder",
        vendor: Some(Vendor::Anthropic),
        login: &Login::Key,
    };
    let context = Context {
        program: &[],
        model_route: Some(route),
        working_directory: "/workspace",
        attempt: &attempt,
        is_root: false,
        session: None,
    };
    let mut adapter = for_work(setup);
    let mut seen = Seen::default();
    seen.take(&adapter.begin(&context));
    for line in input.split(|&byte| byte == b'\n') {
        let step = match message(line, seen.sent) {
            Some(message) => {
                seen.sent += 1;
                seen.bytes += line.len() + 200;
                adapter.send(message)
            }
            None => {
                seen.bytes += line.len() + 200;
                let stream = if line.starts_with(b"!") { Stream::Stderr } else { Stream::Stdout };
                adapter.parse(stream, line)
            }
        };
        seen.take(&step);
    }
    seen.take(&Step { receipts: adapter.abandon(), ..Step::default() });
    assert!(adapter.report().is_some(), "a coding agent says how it ended");
    assert_eq!(seen.receipts.len(), seen.sent, "each message has a receipt");
    assert!(seen.receipts.values().all(|&times| times == 1), "{:?}", seen.receipts);
    assert!(seen.told <= seen.bytes * MOST_PER_BYTE, "{} bytes became {}", seen.bytes, seen.told);
}

fn setup() -> PromptSetup {
    PromptSetup { prompt: "edit a.txt".to_owned(), ..PromptSetup::default() }
}

fn message(line: &[u8], number: usize) -> Option<Message> {
    let text = String::from_utf8_lossy(line.strip_prefix(b">")?).into_owned();
    let (kind, content) = text.split_once(' ').unwrap_or((&text, ""));
    let kind = kind.parse::<MessageKind>().ok()?;
    Some(Message { id: number.to_string(), kind, content: content.to_owned() })
}

/// What followed so far.
#[derive(Default)]
struct Seen {
    sent: usize,
    receipts: BTreeMap<String, usize>,
    /// Bytes that went in, and bytes that came of them.
    bytes: usize,
    told: usize,
}

impl Seen {
    fn take(&mut self, step: &Step) {
        for receipt in &step.receipts {
            *self.receipts.entry(receipt.id.clone()).or_default() += 1;
        }
        for fact in &step.facts {
            assert!(fact.data.is_object(), "the worker adds fields to it");
            self.told += fact.data.to_string().len();
        }
        for line in &step.lines {
            assert!(!line.contains('\n'), "two lines for the CLI in one");
            serde_json::from_str::<serde_json::Value>(line).expect("the CLIs are told JSON");
        }
    }
}
