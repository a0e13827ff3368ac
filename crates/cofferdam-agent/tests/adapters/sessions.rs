//! A conversation that goes on in another run.

use cofferdam_agent::{Adapter, Context, Stream, for_work};
use cofferdam_core::{EventType, KeptSession, Vendor};
use serde_json::{Value, json};

use crate::support::{PROVIDERS, attempt, context, setup};

const KEPT: &str = "/run/cofferdam/session";

fn kept(resume: Option<&str>) -> KeptSession {
    KeptSession { folder: KEPT.to_owned(), resume: resume.map(str::to_owned) }
}

/// The adapter at the moment when its CLI was begun with a session to resume.
fn begun(provider: &str) -> (Box<dyn Adapter + Send>, Vec<String>) {
    let (attempt, session) = (attempt(), kept(Some("the-session")));
    let context = Context { session: Some(&session), ..context(&attempt, Vendor::Anthropic) };
    let mut adapter = for_work(&setup(provider));
    let lines = adapter.begin(&context).lines;
    (adapter, lines)
}

fn said(adapter: &mut dyn Adapter, line: &Value) -> cofferdam_agent::Step {
    adapter.parse(Stream::Stdout, line.to_string().as_bytes())
}

fn method(line: &str) -> String {
    let line: Value = serde_json::from_str(line).expect("a line is JSON");
    line["method"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn only_the_conversation_is_kept() {
    let (attempt, session) = (attempt(), kept(None));
    let of = |provider: &str| {
        let context = Context { session: Some(&session), ..context(&attempt, Vendor::Anthropic) };
        for_work(&setup(provider)).command(&context)
    };
    let links = |provider: &str| {
        of(provider).links.into_iter().map(|link| (link.usual, link.name, link.target)).collect::<Vec<_>>()
    };
    assert_eq!(links("claude_code"), [(".claude", "projects", format!("{KEPT}/claude/projects"))]);
    assert_eq!(links("codex"), [(".codex", "sessions", format!("{KEPT}/codex/sessions"))]);
    assert_eq!(links("opencode"), []);
    assert_eq!(of("opencode").env["OPENCODE_DB"], format!("{KEPT}/opencode.db"));
    for provider in PROVIDERS {
        let plain = for_work(&setup(provider)).command(&context(&attempt, Vendor::Anthropic));
        assert!(plain.links.is_empty() && !plain.env.contains_key("OPENCODE_DB"), "{provider}");
    }
}

#[test]
fn claude_is_told_the_session_and_says_whether_it_has_it() {
    let (attempt, session) = (attempt(), kept(Some("--x")));
    let told = Context { session: Some(&session), ..context(&attempt, Vendor::Anthropic) };
    let argv = for_work(&setup("claude_code")).command(&told).argv;
    assert!(argv.contains(&"--resume=--x".to_owned()), "{argv:?}");

    let (mut adapter, _) = begun("claude_code");
    let init = json!({ "type": "system", "subtype": "init", "session_id": "the-session" });
    assert_eq!(said(&mut *adapter, &init).facts[0].data["resumed"], true);
    let failed = json!({ "type": "result", "subtype": "error_during_execution", "is_error": true });
    said(&mut *adapter, &failed);
    assert!(!adapter.could_not_resume(), "it had begun");

    let (mut adapter, _) = begun("claude_code");
    said(&mut *adapter, &failed);
    assert!(adapter.could_not_resume());
}

#[test]
fn codex_resumes_its_thread_or_begins_another_and_says_so() {
    let (mut adapter, lines) = begun("codex");
    assert_eq!(method(&lines[0]), "initialize");
    let step = said(&mut *adapter, &json!({ "id": 1, "result": {} }));
    assert_eq!(
        step.lines.iter().map(|line| method(line)).collect::<Vec<_>>(),
        ["initialized", "thread/resume"]
    );
    assert!(step.lines[1].contains("the-session"));
    let resumed = json!({ "id": 2, "result": { "thread": { "id": "the-session" } } });
    let step = said(&mut *adapter, &resumed);
    assert_eq!(
        (method(&step.lines[0]).as_str(), &step.facts[0].data["resumed"]),
        ("turn/start", &json!(true))
    );

    let (mut adapter, _) = begun("codex");
    said(&mut *adapter, &json!({ "id": 1, "result": {} }));
    let step = said(&mut *adapter, &json!({ "id": 2, "error": { "message": "no rollout" } }));
    assert_eq!(method(&step.lines[0]), "thread/start");
    assert_eq!(step.facts[0].event_type, EventType::Log);
    assert!(step.facts[0].data["text"].as_str().unwrap().contains("no rollout"));
    let step = said(&mut *adapter, &json!({ "id": 3, "result": { "thread": { "id": "new" } } }));
    assert_eq!(step.facts[0].data.get("resumed"), None);
}

#[test]
fn opencode_resumes_its_session_or_begins_another_and_says_so() {
    let (mut adapter, _) = begun("opencode");
    let step = said(&mut *adapter, &json!({ "id": 1, "result": {} }));
    assert_eq!(method(&step.lines[0]), "session/resume");
    let step = said(&mut *adapter, &json!({ "id": 2, "result": {} }));
    assert_eq!(
        (method(&step.lines[0]).as_str(), &step.facts[0].data["resumed"]),
        ("session/prompt", &json!(true))
    );
    assert!(step.lines[0].contains("the-session"));

    let (mut adapter, _) = begun("opencode");
    said(&mut *adapter, &json!({ "id": 1, "result": {} }));
    let step = said(&mut *adapter, &json!({ "id": 2, "error": { "message": "gone" } }));
    assert_eq!(method(&step.lines[0]), "session/new");
    assert_eq!(step.facts[0].event_type, EventType::Log);
}
