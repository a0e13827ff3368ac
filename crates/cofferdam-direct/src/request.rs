//! What is sent to the model.

use bytes::Bytes;
use cofferdam_core::Thinking;
use serde_json::{Map, Value, json};

use crate::history::History;
use crate::settings::Settings;
use crate::structured;
use crate::tool::Tools;

/// The body of a request that goes on with this conversation.
pub(crate) fn body(settings: &Settings, tools: &Tools, history: &History) -> Bytes {
    let mut body = json!({
        "model": settings.model,
        "max_tokens": settings.max_output_tokens,
        "stream": true,
        "messages": messages(history),
    });
    // Tools come before the system prompt, and this before the messages: what is marked here is the part of a request
    // that never changes, and the next mark is at the end of what has been said.
    if !settings.system.is_empty() {
        let cached = json!({ "type": "ephemeral" });
        body["system"] = json!([{ "type": "text", "text": settings.system, "cache_control": cached }]);
    }
    let mut definitions: Vec<Value> = tools.own.iter().map(|tool| tool.definition()).collect();
    definitions.extend(tools.of_vendor.iter().cloned());
    definitions.extend(settings.output_schema.as_ref().map(structured::definition));
    if !definitions.is_empty() {
        body["tools"] = json!(definitions);
    }
    if let Some(thinking) = settings.thinking {
        // Some models think and keep it to themselves unless they are asked.
        body["thinking"] = match thinking {
            Thinking::Adaptive => json!({ "type": "adaptive", "display": "summarized" }),
            Thinking::Enabled { budget_tokens } => {
                json!({ "type": "enabled", "budget_tokens": budget_tokens, "display": "summarized" })
            }
            Thinking::Disabled => json!({ "type": "disabled" }),
        };
    }
    if let Some(effort) = settings.effort {
        body["output_config"] = json!({ "effort": effort });
    }
    body.to_string().into()
}

/// The turns as messages. Turns of one role that follow each other are one message, and what the API takes from nobody is
/// left out: empty messages, and text without a letter in it.
fn messages(history: &History) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in history.before.iter().chain(&history.own) {
        let content: Vec<Value> =
            turn.content().iter().filter(|block| !is_empty_text(block)).cloned().collect();
        match messages.last_mut().filter(|(role, _)| *role == turn.role()) {
            _ if content.is_empty() => {}
            Some((_, blocks)) => blocks.extend(content),
            None => messages.push((turn.role(), content)),
        }
    }
    if let Some(Value::Object(block)) = messages.last_mut().and_then(|(_, content)| content.last_mut()) {
        mark(block);
    }
    messages.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn is_empty_text(block: &Value) -> bool {
    block["type"] == "text" && block["text"].as_str().is_some_and(|text| text.trim().is_empty())
}

/// Lets the vendor keep everything up to here for the next request. What was thought cannot be marked.
fn mark(block: &mut Map<String, Value>) {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    if !matches!(kind, "thinking" | "redacted_thinking") {
        block.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}
