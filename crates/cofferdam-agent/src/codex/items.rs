//! The items of a turn: thoughts, commands, changes of files, and further tools.

use serde_json::{Value, json};

use crate::adapter::{Parsed, Step};
use crate::facts;
use crate::json_lines::text_at;

/// Items that are no tools.
const SAID: [&str; 3] = ["userMessage", "agentMessage", "reasoning"];

/// Fields of an item that say nothing of what the tool is given or answers.
const FRAME: [&str; 6] = ["type", "id", "status", "startedAtMs", "completedAtMs", "durationMs"];

pub(super) fn started(item: &Value) -> Step {
    let (kind, id) = (text_at(item, "/type"), text_at(item, "/id"));
    match kind {
        _ if SAID.contains(&kind) => Step::default(),
        "commandExecution" => {
            let input = json!({ "command": item["command"], "cwd": item["cwd"] });
            Step::fact(facts::tool_use(id, "shell", input))
        }
        "fileChange" => Step::fact(facts::tool_use(id, "apply_patch", json!({ "changes": item["changes"] }))),
        "" => Step::unknown(),
        _ => Step::fact(facts::tool_use(id, kind, content(item))),
    }
}

pub(super) fn completed(item: &Value) -> Step {
    let (kind, id) = (text_at(item, "/type"), text_at(item, "/id"));
    let failed = !matches!(text_at(item, "/status"), "completed" | "");
    match kind {
        "reasoning" => thought(item),
        "commandExecution" => {
            let failed = failed || item["exitCode"].as_i64().is_some_and(|code| code != 0);
            let mut fact = facts::tool_result(id, failed, text_at(item, "/aggregatedOutput"));
            fact.data["exit_code"] = item["exitCode"].clone();
            Step::fact(fact)
        }
        "fileChange" => Step::fact(facts::tool_result(id, failed, text_at(item, "/status"))),
        "" => Step::unknown(),
        _ => Step::fact(facts::tool_result(id, failed, &content(item).to_string())),
    }
}

pub(super) fn usage(total: &Value) -> Parsed {
    facts::usage(json!({
        "scope": "session",
        "input_tokens": total["inputTokens"],
        "output_tokens": total["outputTokens"],
        "cache_read_tokens": total["cachedInputTokens"],
        "cache_write_tokens": total["cacheWriteInputTokens"],
        "reasoning_tokens": total["reasoningOutputTokens"],
    }))
}

/// The summary is what the vendor shows; the thought itself is there with open models only.
fn thought(item: &Value) -> Step {
    let parts = ["summary", "content"].into_iter().filter_map(|key| item[key].as_array());
    let parts: Vec<&str> = parts.flatten().filter_map(Value::as_str).collect();
    if parts.is_empty() { Step::default() } else { Step::fact(facts::thinking(&parts.join("\n\n"))) }
}

fn content(item: &Value) -> Value {
    let mut content = item.clone();
    if let Some(fields) = content.as_object_mut() {
        fields.retain(|key, value| !FRAME.contains(&key.as_str()) && !value.is_null());
    }
    content
}
