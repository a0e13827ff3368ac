//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::Turn;

pub(super) fn events(turn: &Turn) -> Vec<String> {
    let mut events = vec![delta(turn, json!({"role": "assistant", "content": ""}), Value::Null)];
    for chunk in turn.chunks(turn.thinking.as_deref().unwrap_or_default()) {
        events.push(delta(turn, json!({"reasoning_content": chunk}), Value::Null));
    }
    for chunk in turn.chunks(turn.text.as_deref().unwrap_or_default()) {
        events.push(delta(turn, json!({"content": chunk}), Value::Null));
    }
    for (index, call) in turn.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        let start =
            json!({"index": index, "id": turn.call_id(index), "type": "function", "function": function});
        events.push(delta(turn, json!({"tool_calls": [start]}), Value::Null));
        for chunk in turn.chunks(&call.arguments()) {
            let part = json!({"index": index, "function": {"arguments": chunk}});
            events.push(delta(turn, json!({"tool_calls": [part]}), Value::Null));
        }
    }
    events.push(delta(turn, json!({}), json!(finish_reason(turn))));
    if turn.stream_usage {
        let mut last = envelope(turn, "chat.completion.chunk", json!([]));
        last["usage"] = usage(turn);
        events.push(event(&last));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

pub(super) fn body(turn: &Turn) -> Value {
    let mut message = json!({"role": "assistant", "content": turn.text, "refusal": null});
    if let Some(thinking) = &turn.thinking {
        message["reasoning_content"] = json!(thinking);
    }
    if !turn.calls.is_empty() {
        let calls = turn.calls.iter().enumerate().map(|(index, call)| {
            let function = json!({"name": call.name, "arguments": call.arguments()});
            json!({"id": turn.call_id(index), "type": "function", "function": function})
        });
        message["tool_calls"] = calls.collect();
    }
    let choice =
        json!({"index": 0, "message": message, "finish_reason": finish_reason(turn), "logprobs": null});
    let mut body = envelope(turn, "chat.completion", json!([choice]));
    body["usage"] = usage(turn);
    body
}

fn delta(turn: &Turn, delta: Value, finish_reason: Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": null});
    event(&envelope(turn, "chat.completion.chunk", json!([choice])))
}

fn envelope(turn: &Turn, object: &str, choices: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", turn.number),
        "object": object,
        "created": 0,
        "model": turn.model,
        "choices": choices,
    })
}

fn finish_reason(turn: &Turn) -> &'static str {
    if turn.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(turn: &Turn) -> Value {
    let input = turn.usage.input + turn.usage.cache_read + turn.usage.cache_write;
    json!({
        "prompt_tokens": input,
        "completion_tokens": turn.usage.output,
        "total_tokens": input + turn.usage.output,
        "prompt_tokens_details": {"cached_tokens": turn.usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": turn.usage.reasoning},
    })
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
