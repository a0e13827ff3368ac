//! From the events of a run to the messages of `claude-agent-sdk`.

use std::collections::BTreeMap;

use cofferdam_core::{Event, EventType, RunId};
use serde_json::{Map, Value, json};

/// What was said in a run without a process, put together again from its events. Events are told in their order, in pages
/// of any size.
#[derive(Debug, Clone)]
pub struct Conversation {
    run: RunId,
    /// What the model was told of itself: its name and its tools.
    setup: Value,
    turns: BTreeMap<u32, Turn>,
    /// What it came to, as the conversation itself says.
    report: Option<Value>,
    /// How long the model's server took for its answers.
    api_ms: u64,
    /// The status that its server refused the last call with, as the broker saw it. The conversation is told another one where
    /// asking again would be of no use.
    refused: Option<u64>,
}

/// One answer of the model, and what came after it.
#[derive(Debug, Clone, Default)]
struct Turn {
    attempt: Option<u32>,
    /// Blocks by their place in the answer.
    blocks: BTreeMap<u64, Value>,
    /// Of each call that the answer took: how it stopped and what it used.
    calls: Vec<Value>,
    /// What the tools answered before the model went on.
    results: Vec<Value>,
    /// What people said before it went on.
    said: Vec<Value>,
}

/// What is known of a run besides its events.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// The model that was used, where no event tells it.
    pub model: &'a str,
    /// From acceptance to the end.
    pub duration_ms: u64,
    /// What was spent at the model, in millionths of a US dollar.
    pub cost_micro_usd: u64,
    /// Whether the run succeeded.
    pub success: bool,
    /// Why it failed, for people.
    pub error: Option<&'a str>,
}

impl Conversation {
    /// Of a run of which nothing is known yet.
    #[must_use]
    pub fn of(run: &RunId) -> Self {
        Self {
            run: run.clone(),
            setup: Value::Null,
            turns: BTreeMap::new(),
            report: None,
            api_ms: 0,
            refused: None,
        }
    }

    /// Whose conversation it is.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Takes the next event. Those that say nothing of the conversation are left out.
    pub fn take(&mut self, event: &Event) {
        let data = &event.data;
        match event.event_type {
            EventType::AgentSession => self.setup = data.clone(),
            EventType::AgentFinished => self.report = Some(data["result"].clone()),
            EventType::AgentMessage => {
                self.block(event, json!({ "type": "text", "text": data["text"] }));
            }
            EventType::AgentThinking if data["redacted"] == true => {
                self.block(event, json!({ "type": "redacted_thinking", "data": "" }));
            }
            EventType::AgentThinking => {
                // The signature is the vendor's proof, kept apart from what is shown.
                let block = json!({ "type": "thinking", "thinking": data["text"], "signature": "" });
                self.block(event, block);
            }
            EventType::AgentToolUse => {
                let kind = if is_of_vendor(data) { "server_tool_use" } else { "tool_use" };
                let block =
                    json!({ "type": kind, "id": data["id"], "name": data["name"], "input": data["input"] });
                self.block(event, block);
            }
            EventType::AgentToolResult if is_of_vendor(data) => {
                // What was found is on record as text: titles and addresses.
                let found = json!([{ "type": "text", "text": data["output"] }]);
                let kind = "web_search_tool_result";
                self.block(event, json!({ "type": kind, "tool_use_id": data["id"], "content": found }));
            }
            EventType::AgentToolResult => {
                let result = json!({ "type": "tool_result", "tool_use_id": data["id"],
                    "content": data["output"], "is_error": data["is_error"] == json!(true) });
                self.turn(event).results.push(result);
            }
            EventType::AgentUsage => self.turn(event).calls.push(data.clone()),
            EventType::MessageDelivered if data["text"].is_string() => {
                let said = json!({ "type": "text", "text": data["text"] });
                self.turn(event).said.push(said);
            }
            EventType::ModelUsage => {
                self.api_ms = self.api_ms.saturating_add(data["duration_ms"].as_u64().unwrap_or(0));
                self.refused = None;
            }
            EventType::ModelError => self.refused = data["status"].as_u64(),
            _ => {}
        }
    }

    /// What the model said last: the answer, if the run has ended well.
    #[must_use]
    pub fn result(&self) -> Option<&str> {
        self.report.as_ref()?["result"].as_str()
    }

    /// How many answers the model gave.
    #[must_use]
    pub fn num_turns(&self) -> u64 {
        let counted = self.report.as_ref().and_then(|report| report["num_turns"].as_u64());
        counted.unwrap_or_else(|| self.turns.values().filter(|turn| !turn.blocks.is_empty()).count() as u64)
    }

    /// The model, as its vendor names it.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.setup["model"].as_str()
    }

    /// What the model's server answered last, if it refused.
    #[must_use]
    pub fn api_error_status(&self) -> Option<u64> {
        let told = self.report.as_ref()?["api_error_status"].as_u64()?;
        Some(self.refused.unwrap_or(told))
    }

    /// What was used, as the SDK names it.
    #[must_use]
    pub fn usage(&self) -> Value {
        match self.report.as_ref().map(|report| &report["usage"]) {
            Some(usage) if usage.is_object() => usage_of([usage]),
            Some(_) | None => usage_of(self.turns.values().flat_map(|turn| &turn.calls)),
        }
    }

    /// All messages, as `claude-agent-sdk` shapes them: `system`, then `assistant` and `user` in turn, then the `result`.
    #[must_use]
    pub fn messages(&self, ending: &Ending<'_>) -> Vec<Value> {
        let model = self.model().unwrap_or(ending.model);
        let mut messages = vec![json!({
            "type": "system", "subtype": "init", "model": model,
            "tools": if self.setup["tools"].is_array() { self.setup["tools"].clone() } else { json!([]) },
            "mcp_servers": [], "slash_commands": [], "permissionMode": "default",
        })];
        for turn in self.turns.values() {
            if !turn.blocks.is_empty() {
                messages.push(self.assistant(turn, model));
            }
            if !turn.results.is_empty() {
                messages.push(user(&turn.results));
            }
            messages.extend(turn.said.iter().map(|said| user(std::slice::from_ref(said))));
        }
        messages.push(self.ending(ending, model));
        for (number, message) in (0..).zip(&mut messages) {
            message["session_id"] = json!(self.run);
            message["uuid"] = json!(uuid(&self.run, number));
        }
        messages
    }

    fn assistant(&self, turn: &Turn, model: &str) -> Value {
        let last = turn.calls.last().unwrap_or(&Value::Null);
        json!({ "type": "assistant", "parent_tool_use_id": null, "message": {
            "id": last["message_id"], "type": "message", "role": "assistant", "model": model,
            "content": turn.blocks.values().collect::<Vec<_>>(),
            "stop_reason": last["stop_reason"], "stop_sequence": null,
            "usage": usage_of(&turn.calls),
        } })
    }

    fn ending(&self, ending: &Ending<'_>, model: &str) -> Value {
        let none = Value::Null;
        let report = self.report.as_ref().unwrap_or(&none);
        let cost = dollars(ending.cost_micro_usd);
        let usage = self.usage();
        let subtype = match (ending.success, report["subtype"].as_str()) {
            (true, _) => "success",
            (false, Some(subtype)) => subtype,
            (false, None) => "error_during_execution",
        };
        let mut result = json!({
            "type": "result", "subtype": subtype, "is_error": !ending.success,
            "duration_ms": ending.duration_ms,
            "duration_api_ms": self.api_ms,
            "num_turns": self.num_turns(), "stop_reason": report["stop_reason"],
            "total_cost_usd": cost, "usage": usage,
            "modelUsage": { model: model_usage(&usage, cost) },
            "permission_denials": if report["permission_denials"].is_array() {
                report["permission_denials"].clone()
            } else { json!([]) },
        });
        let fields = result.as_object_mut().expect("it was made as an object");
        let optional = ["structured_output", "terminal_reason"];
        copy(report, fields, &optional);
        if let Some(status) = self.api_error_status() {
            fields.insert("api_error_status".to_owned(), json!(status));
        }
        match (ending.success, self.result(), ending.error) {
            (true, said, _) => drop(fields.insert("result".to_owned(), json!(said.unwrap_or_default()))),
            // The words of the run's outcome are those that its state says, so that two reasons never differ.
            (false, _, Some(error)) => drop(fields.insert("errors".to_owned(), json!([error]))),
            (false, _, None) => copy(report, fields, &["errors"]),
        }
        result
    }

    /// Adds a block at its place. One that a later attempt says stands for what an earlier one had said there.
    fn block(&mut self, event: &Event, block: Value) {
        let turn = self.turn(event);
        let index = event.data["index"].as_u64().unwrap_or(turn.blocks.len() as u64);
        turn.blocks.insert(index, block);
    }

    /// The turn of an event. An attempt that died within a turn leaves part of it, and the next one says all of it anew.
    fn turn(&mut self, event: &Event) -> &mut Turn {
        let last = self.turns.last_key_value().map_or(1, |(number, _)| *number);
        let number = event.data["turn"].as_u64().and_then(|number| number.try_into().ok()).unwrap_or(last);
        let turn = self.turns.entry(number).or_default();
        if turn.attempt < event.attempt && is_of_answer(event) {
            // What people said after it was said once, and is told no second time.
            let said = std::mem::take(&mut turn.said);
            *turn = Turn { attempt: event.attempt, said, ..Turn::default() };
        }
        turn
    }
}

fn user(content: &[Value]) -> Value {
    json!({ "type": "user", "parent_tool_use_id": null, "message": { "role": "user", "content": content } })
}

/// Whether an event is part of what the model itself said: a later attempt may answer the tools of an earlier one, and deliver
/// what people say after it.
fn is_of_answer(event: &Event) -> bool {
    match event.event_type {
        EventType::AgentToolResult => is_of_vendor(&event.data),
        EventType::MessageDelivered => false,
        _ => true,
    }
}

fn is_of_vendor(data: &Value) -> bool {
    data["by"] == "vendor"
}

fn copy(from: &Value, to: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        if let Some(value) = from.get(name).filter(|value| !value.is_null()) {
            to.insert((*name).to_owned(), value.clone());
        }
    }
}

/// The sum of what calls used.
fn usage_of<'a>(calls: impl IntoIterator<Item = &'a Value>) -> Value {
    let calls: Vec<&Value> = calls.into_iter().collect();
    let sum = |name: &str| calls.iter().filter_map(|call| call[name].as_u64()).sum::<u64>();
    json!({
        "input_tokens": sum("input_tokens"),
        "output_tokens": sum("output_tokens"),
        "cache_creation_input_tokens": sum("cache_creation_input_tokens"),
        "cache_read_input_tokens": sum("cache_read_input_tokens"),
        "server_tool_use": { "web_search_requests": sum("web_search_requests") },
    })
}

fn model_usage(usage: &Value, cost: f64) -> Value {
    json!({
        "inputTokens": usage["input_tokens"], "outputTokens": usage["output_tokens"],
        "cacheReadInputTokens": usage["cache_read_input_tokens"],
        "cacheCreationInputTokens": usage["cache_creation_input_tokens"],
        "webSearchRequests": usage["server_tool_use"]["web_search_requests"], "costUSD": cost,
    })
}

/// Millionths of a dollar as the SDK writes money.
pub(super) fn dollars(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1_000_000.0
}

/// Names one message of a run, the same each time that it is asked for. The run's id is a time and random bits already, as
/// UUIDs of version 7 are; the message's number is added to it.
fn uuid(run: &RunId, message: u128) -> String {
    let value = run.number().wrapping_add(message);
    // Version 8, which is made as its maker likes, and the variant of the standard.
    let value = (value & !(0xf << 76) & !(0b11 << 62)) | (0x8 << 76) | (0b10 << 62);
    let hex = format!("{value:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
