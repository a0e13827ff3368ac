//! Turns as facts for people: one event for each block.

use cofferdam_core::EventType;
use serde_json::{Value, json};

use crate::ended::Report;
use crate::ports::Fact;
use crate::settings::Settings;
use crate::structured;
use crate::tool::Tools;
use crate::turn::Turn;

/// The conversation begins, or goes on after a crash.
pub(crate) fn session(settings: &Settings, tools: &Tools) -> Fact {
    let own = tools.own.iter().map(|tool| tool.name().to_owned());
    let of_vendor = tools.of_vendor.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned));
    let structured = settings.output_schema.iter().map(|_| structured::TOOL.to_owned());
    let tools: Vec<String> = own.chain(of_vendor).chain(structured).collect();
    fact(EventType::AgentSession, json!({ "model": settings.model, "tools": tools }))
}

/// What a turn says. `number` is the model's turn that it is, or belongs to.
pub(crate) fn of_turn(turn: &Turn, number: usize) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for (index, block) in turn.content().iter().enumerate() {
        // What people say has its receipts, and that the model was told something is told as such.
        let is_told = matches!(turn, Turn::User { .. }) && block["type"] == "text";
        let Some(mut fact) = of_block(block).filter(|_| !is_told) else { continue };
        fact.data["turn"] = json!(number);
        fact.data["index"] = json!(index);
        facts.push(fact);
    }
    if let Turn::Assistant { id, model, stop_reason, usage, .. } = turn {
        let mut data = json!(usage);
        data["scope"] = json!("call");
        data["turn"] = json!(number);
        data["message_id"] = json!(id);
        data["model"] = json!(model);
        data["stop_reason"] = json!(stop_reason);
        facts.push(fact(EventType::AgentUsage, data));
    }
    facts
}

/// Something that is worth knowing of how the conversation is led.
pub(crate) fn log(text: &str) -> Fact {
    fact(EventType::Log, json!({ "text": text }))
}

/// The conversation is over.
pub(crate) fn finished(report: &Report) -> Fact {
    let message = report.result.clone().unwrap_or_else(|| report.errors.join("; "));
    let said = json!({ "ok": !report.is_error, "message": message });
    fact(EventType::AgentFinished, json!({ "how": "finished", "report": said, "result": report }))
}

fn of_block(block: &Value) -> Option<Fact> {
    let kind = block["type"].as_str().unwrap_or_default();
    Some(match kind {
        "text" if block["text"] == "" => return None,
        "text" => {
            let mut data = json!({ "text": block["text"] });
            if block["citations"].is_array() {
                data["citations"] = block["citations"].clone();
            }
            fact(EventType::AgentMessage, data)
        }
        "thinking" => fact(EventType::AgentThinking, json!({ "text": block["thinking"] })),
        "redacted_thinking" => fact(EventType::AgentThinking, json!({ "text": "", "redacted": true })),
        "tool_use" => fact(EventType::AgentToolUse, call(block)),
        "server_tool_use" => fact(EventType::AgentToolUse, by_vendor(call(block))),
        "tool_result" => {
            let is_error = block["is_error"] == true;
            let output = text_of(&block["content"]);
            let data = json!({ "id": block["tool_use_id"], "is_error": is_error, "output": output });
            fact(EventType::AgentToolResult, data)
        }
        _ if kind.ends_with("_tool_result") => {
            let is_error = block["content"]["error_code"].is_string();
            let output = found_by_vendor(&block["content"]);
            let data = json!({ "id": block["tool_use_id"], "is_error": is_error, "output": output });
            fact(EventType::AgentToolResult, by_vendor(data))
        }
        _ => log(&format!("the model answered with a block of the type `{kind}`")),
    })
}

fn call(block: &Value) -> Value {
    json!({ "id": block["id"], "name": block["name"], "input": block["input"] })
}

fn by_vendor(mut data: Value) -> Value {
    data["by"] = json!("vendor");
    data
}

/// What the vendor's tool found: the pages' text is only for the model.
fn found_by_vendor(content: &Value) -> String {
    match content {
        Value::Array(found) => {
            let lines = found.iter().map(|one| {
                let (title, url) = (one["title"].as_str(), one["url"].as_str());
                format!("{} {}", title.unwrap_or_default(), url.unwrap_or_default()).trim().to_owned()
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        other => other["error_code"].as_str().unwrap_or_default().to_owned(),
    }
}

/// The text of a result that is a text or a list of blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn fact(event_type: EventType, data: Value) -> Fact {
    Fact { event_type, data }
}
