//! Anthropic Messages.

use serde_json::{Value, json};

use super::Turn;
use crate::tools::{Call, CallInput};

pub(super) fn events(turn: &Turn) -> Vec<String> {
    let mut message = body(turn);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = json!(1);
    let mut events = vec![event("message_start", json!({"message": message}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.push(event("content_block_start", json!({"index": index, "content_block": start})));
        for delta in deltas {
            events.push(event("content_block_delta", json!({"index": index, "delta": delta})));
        }
        events.push(event("content_block_stop", json!({"index": index})));
        index += 1;
    };
    if let Some(thinking) = &turn.thinking {
        let mut deltas: Vec<Value> = turn
            .chunks(thinking)
            .iter()
            .map(|chunk| json!({"type": "thinking_delta", "thinking": chunk}))
            .collect();
        deltas.push(json!({"type": "signature_delta", "signature": SIGNATURE}));
        block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    for whole in &turn.blocks {
        block(whole.clone(), Vec::new());
    }
    if let Some(text) = &turn.text {
        let chunks = turn.chunks(text);
        let deltas = chunks.iter().map(|chunk| json!({"type": "text_delta", "text": chunk}));
        block(json!({"type": "text", "text": ""}), deltas.collect());
    }
    for (at, call) in turn.calls.iter().enumerate() {
        let mut start = tool_use(turn, at, call);
        let input = start["input"].to_string();
        start["input"] = json!({});
        let chunks = turn.chunks(&input);
        let deltas = chunks.iter().map(|chunk| json!({"type": "input_json_delta", "partial_json": chunk}));
        block(start, deltas.collect());
    }
    let delta = json!({"stop_reason": stop_reason(turn), "stop_sequence": null});
    events.push(event("message_delta", json!({"delta": delta, "usage": usage(turn)})));
    events.push(event("message_stop", json!({})));
    events
}

pub(super) fn body(turn: &Turn) -> Value {
    let mut content = Vec::new();
    if let Some(thinking) = &turn.thinking {
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": SIGNATURE}));
    }
    content.extend(turn.blocks.iter().cloned());
    if let Some(text) = &turn.text {
        content.push(json!({"type": "text", "text": text}));
    }
    content.extend(turn.calls.iter().enumerate().map(|(at, call)| tool_use(turn, at, call)));
    json!({
        "id": format!("msg_{}", turn.number),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content,
        "stop_reason": stop_reason(turn),
        "stop_sequence": null,
        "usage": usage(turn),
    })
}

/// The API signs what was thought; nobody here checks it.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

fn tool_use(turn: &Turn, index: usize, call: &Call) -> Value {
    let input = match &call.input {
        CallInput::Object(input) => input.clone(),
        CallInput::FreeText(text) => json!({"input": text}),
    };
    json!({"type": "tool_use", "id": format!("toolu_{}_{index}", turn.number), "name": call.name, "input": input})
}

fn stop_reason(turn: &Turn) -> &str {
    match &turn.stop_reason {
        Some(reason) => reason,
        None if turn.calls.is_empty() => "end_turn",
        None => "tool_use",
    }
}

fn usage(turn: &Turn) -> Value {
    json!({
        "input_tokens": turn.usage.input,
        "output_tokens": turn.usage.output,
        "cache_read_input_tokens": turn.usage.cache_read,
        "cache_creation_input_tokens": turn.usage.cache_write,
    })
}

fn event(name: &str, mut data: Value) -> String {
    data["type"] = json!(name);
    format!("event: {name}\ndata: {data}\n\n")
}
