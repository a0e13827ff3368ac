//! Setups, and a replay of what a CLI printed.

use std::fmt::Write as _;

use cofferdam_agent::{Adapter, Context, Message, ModelRoute, Step, Stream, for_work};
use cofferdam_core::{
    Agent, AttemptRef, EventType, Login, MessageKind, MessageReceipt, PromptSetup, Receipt, Vendor, Work,
};

/// The coding agents, by the names of their transcripts' folders.
pub(crate) const PROVIDERS: [&str; 3] = ["claude_code", "codex", "opencode"];

pub(crate) fn setup(provider: &str) -> Work {
    let model = if provider == "codex" { "gpt-5.5" } else { "claude-sonnet-4-5" };
    let setup = PromptSetup {
        prompt: "edit a.txt".to_owned(),
        model: Some(model.to_owned()),
        system_prompt: Some("Be brief.".to_owned()),
        ..PromptSetup::default()
    };
    match provider {
        "claude_code" => Work::Agent { agent: Agent::ClaudeCode, setup },
        "codex" => Work::Agent { agent: Agent::Codex, setup },
        "opencode" => Work::Agent { agent: Agent::OpenCode, setup },
        other => panic!("no adapter is called {other}"),
    }
}

pub(crate) fn attempt() -> AttemptRef {
    AttemptRef { run: "run_00000000000000000000000000".parse().expect("a run's id"), number: 1 }
}

static PROGRAM: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();

pub(crate) fn context(attempt: &AttemptRef, vendor: Vendor) -> Context<'_> {
    Context {
        program: PROGRAM.get_or_init(|| vec!["/run/cofferdam/agent/cli".to_owned()]),
        model_route: Some(ModelRoute {
            gateway_url: "http://127.0.0.1:3128",
            placeholder: "placeholder",
            vendor: Some(vendor),
            login: &Login::Key,
        }),
        working_directory: "/workspace",
        attempt,
        is_root: false,
        session: None,
    }
}

pub(crate) fn message(id: &str, kind: MessageKind, content: &str) -> Message {
    Message { id: id.to_owned(), kind, content: content.to_owned() }
}

/// Feeds a transcript to an adapter, and the messages when the agent first uses a tool, as when it was
/// recorded. What follows is written down: `<` lines for the CLI, facts, receipts, and the end.
pub(crate) fn replay(provider: &str, transcript: &str, messages: &[Message]) -> String {
    let attempt = attempt();
    let mut adapter = for_work(&setup(provider));
    let mut seen = String::new();
    let mut messages = messages.to_vec();
    let step = adapter.begin(&context(&attempt, Vendor::Anthropic));
    note(&step, "", &mut seen);
    for line in transcript.lines() {
        let step = adapter.parse(Stream::Stdout, line.as_bytes());
        note(&step, line, &mut seen);
        if step.facts.iter().any(|fact| fact.event_type == EventType::AgentToolUse) {
            for message in messages.drain(..) {
                writeln!(seen, "> {} {}", message.kind.as_str(), message.id).expect("a text takes all");
                note(&adapter.send(message), "", &mut seen);
            }
        }
    }
    end(&mut *adapter, &mut seen);
    seen
}

fn note(step: &Step, line: &str, seen: &mut String) {
    if step.keep_line {
        let shown: String = line.chars().take(100).collect();
        writeln!(seen, "log {shown}").expect("a text takes all");
    }
    for fact in &step.facts {
        writeln!(seen, "{} {}", fact.event_type, fact.data).expect("a text takes all");
    }
    for receipt in &step.receipts {
        note_receipt(receipt, seen);
    }
    for line in &step.lines {
        writeln!(seen, "< {line}").expect("a text takes all");
    }
}

fn note_receipt(MessageReceipt { id, receipt }: &MessageReceipt, seen: &mut String) {
    match receipt {
        Receipt::Delivered { taken_as } => {
            writeln!(seen, "delivered {id} as {}", taken_as.as_deref().unwrap_or_default())
        }
        Receipt::Refused { reason } => writeln!(seen, "refused {id}: {reason}"),
    }
    .expect("a text takes all");
}

fn end(adapter: &mut dyn Adapter, seen: &mut String) {
    writeln!(seen, "idle: {}", adapter.is_idle()).expect("a text takes all");
    for receipt in adapter.abandon() {
        note_receipt(&receipt, seen);
    }
    let report = adapter.report().expect("a coding agent reports");
    writeln!(seen, "ok: {}, {}", report.ok, report.message).expect("a text takes all");
}
