//! What the adapters of CLIs that print one JSON object a line have in common.

use cofferdam_core::AgentReport;
use serde_json::{Value, json};

use crate::facts::beginning;

/// The longest line that is read as JSON: a tool's answer of a megabyte, escaped, fits well.
pub(crate) const LONGEST_LINE: usize = 8 << 20;

/// How much of an agent's last words the report repeats. They are an event as well.
const REPORT_BYTES: usize = 64 << 10;

/// The report of an agent that gave none.
pub(crate) fn unfinished(who: &str) -> AgentReport {
    AgentReport { ok: false, message: format!("{who} ended before it had finished its turn") }
}

/// A line that is a JSON object.
pub(crate) fn object(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(line).ok().filter(Value::is_object)
}

/// The text at a JSON pointer; empty where there is none.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The text of a content that is a text, a block or a list of them. A block that has none is named.
pub(crate) fn joined_text(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(joined_text).collect::<Vec<_>>().join("\n"),
        Value::Object(block) => match (&block.get("text"), &block.get("content")) {
            (Some(Value::String(text)), _) => text.clone(),
            (None, Some(inner)) => joined_text(inner),
            _ => format!("[{}]", block.get("type").and_then(Value::as_str).unwrap_or("something")),
        },
        Value::Bool(_) | Value::Number(_) => content.to_string(),
    }
}

/// A report, as long as it may be.
pub(crate) fn report(ok: bool, message: &str) -> AgentReport {
    AgentReport { ok, message: beginning(message, REPORT_BYTES).to_owned() }
}

/// A failed model call's message: where the CLI passes on the vendor's answer whole, the sentence in it.
pub(crate) fn error_sentence(message: &str) -> String {
    let sentence = serde_json::from_str::<Value>(message).ok();
    let sentence = sentence.as_ref().map_or("", |answer| text_at(answer, "/error/message"));
    if sentence.is_empty() { message.to_owned() } else { sentence.to_owned() }
}

/// A request of JSON-RPC.
pub(crate) fn request(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A notification of JSON-RPC.
pub(crate) fn notification(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// The answer to a request that we do not serve. Without one the CLI would wait for ever.
pub(crate) fn not_served(id: &Value) -> String {
    let error = json!({ "code": -32601, "message": "nobody is there to answer this request" });
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendors_answer_is_reduced_to_its_sentence_and_anything_else_is_left() {
        let answer = r#"{"type":"error","error":{"type":"x","message":"budget used up"}}"#;
        assert_eq!(error_sentence(answer), "budget used up");
        assert_eq!(error_sentence("stream closed"), "stream closed");
        assert_eq!(error_sentence("{}"), "{}");
    }

    #[test]
    fn texts_of_any_content_are_joined_and_what_has_none_is_named() {
        let content = json!(["a", { "type": "text", "text": "b" }, { "type": "image" },
            { "type": "content", "content": { "type": "text", "text": "c" } }]);
        assert_eq!(joined_text(&content), "a\nb\n[image]\nc");
        assert_eq!(joined_text(&Value::Null), "");
    }
}
