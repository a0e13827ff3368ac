//! The facts that all coding agents' lines are translated into. docs/reference/events.md is about them.

use cofferdam_core::{EventType, MAX_EVENT_TEXT};
use serde_json::{Map, Value, json};

use crate::adapter::Parsed;
use crate::output_text::shown_text;

/// `agent.session`: the CLI has opened its session.
pub(crate) fn session(id: &str, model: Option<&str>) -> Parsed {
    fact(EventType::AgentSession, json!({ "session_id": id, "model": model }))
}

/// `agent.session`: the CLI goes on with a session of an earlier run.
pub(crate) fn resumed_session(id: &str, model: Option<&str>) -> Parsed {
    fact(EventType::AgentSession, json!({ "session_id": id, "model": model, "resumed": true }))
}

/// `log`: the session of an earlier run is gone.
pub(crate) fn not_resumed(id: &str, why: &str) -> Parsed {
    log(&format!("session {id} cannot be resumed ({why}); a new one begins"))
}

/// `agent.message`: what the agent said.
pub(crate) fn message(text: &str) -> Parsed {
    fact(EventType::AgentMessage, Value::Object(cut_text("text", text)))
}

/// `agent.thinking`: what it thought, as far as its CLI tells.
pub(crate) fn thinking(text: &str) -> Parsed {
    fact(EventType::AgentThinking, Value::Object(cut_text("text", text)))
}

/// `agent.tool_use`: it uses a tool. `input` is what it gives to it.
pub(crate) fn tool_use(id: &str, name: &str, input: Value) -> Parsed {
    let mut data = match longer_than_an_event(&input) {
        None => Map::from_iter([("input".to_owned(), input)]),
        Some(text) => cut_text("input", &text),
    };
    data.insert("id".to_owned(), json!(id));
    data.insert("name".to_owned(), json!(name));
    fact(EventType::AgentToolUse, Value::Object(data))
}

/// `agent.tool_result`: what the tool answered.
pub(crate) fn tool_result(id: &str, is_error: bool, output: &str) -> Parsed {
    let mut data = cut_text("output", output);
    data.insert("id".to_owned(), json!(id));
    data.insert("is_error".to_owned(), json!(is_error));
    fact(EventType::AgentToolResult, Value::Object(data))
}

/// `agent.usage`: what the agent says that it has used, without what it does not say. The broker's own count
/// is `model.usage`.
pub(crate) fn usage(mut data: Value) -> Parsed {
    if let Some(fields) = data.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    fact(EventType::AgentUsage, data)
}

/// `log`: something of the CLI that is worth keeping.
pub(crate) fn log(text: &str) -> Parsed {
    fact(EventType::Log, Value::Object(cut_text("text", text)))
}

/// `agent.stderr`: a line of the CLI's stderr.
pub(crate) fn stderr(line: &[u8]) -> Parsed {
    fact(EventType::AgentStderr, Value::Object(shown_text(line)))
}

/// The text, at most `most` bytes of it, and cut between characters.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..end]
}

fn fact(event_type: EventType, data: Value) -> Parsed {
    Parsed { event_type, data }
}

fn cut_text(key: &str, text: &str) -> Map<String, Value> {
    let shown = beginning(text, MAX_EVENT_TEXT);
    let mut data = Map::from_iter([(key.to_owned(), json!(shown))]);
    if shown.len() < text.len() {
        data.insert("cut".to_owned(), Value::Bool(true));
    }
    data
}

fn longer_than_an_event(value: &Value) -> Option<String> {
    let text = value.to_string();
    (text.len() > MAX_EVENT_TEXT).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_an_event_is_cut_between_characters_and_marked() {
        let long = "é".repeat(MAX_EVENT_TEXT);
        for (parsed, key) in [
            (message(&long), "text"),
            (tool_result("1", false, &long), "output"),
            (tool_use("1", "Write", json!({ "content": long })), "input"),
        ] {
            assert_eq!(parsed.data["cut"], true);
            assert!(parsed.data[key].as_str().unwrap().len() <= MAX_EVENT_TEXT);
        }
        assert_eq!(message("short").data, json!({ "text": "short" }));
    }
}
