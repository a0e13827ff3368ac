//! OpenAI Responses.

use serde_json::{Value, json};

use super::Turn;
use crate::tools::{Call, CallInput};

pub(super) fn events(turn: &Turn) -> Vec<String> {
    let mut stream = Stream::default();
    let begun = response(turn, "in_progress", Vec::new());
    stream.event("response.created", json!({"response": begun}));
    stream.event("response.in_progress", json!({"response": begun}));
    if let Some(thinking) = &turn.thinking {
        stream.reasoning(turn, thinking);
    }
    if let Some(text) = &turn.text {
        stream.message(turn, text);
    }
    for (at, call) in turn.calls.iter().enumerate() {
        stream.call(turn, at, call);
    }
    let done = response(turn, "completed", stream.output.clone());
    stream.event("response.completed", json!({"response": done}));
    stream.events
}

pub(super) fn body(turn: &Turn) -> Value {
    let mut output = Vec::new();
    output.extend(turn.thinking.as_ref().map(|thinking| reasoning(turn, thinking)));
    output.extend(turn.text.as_ref().map(|text| message(turn, text)));
    output.extend(turn.calls.iter().enumerate().map(|(at, call)| tool_call(turn, at, call)));
    response(turn, "completed", output)
}

#[derive(Default)]
struct Stream {
    events: Vec<String>,
    output: Vec<Value>,
}

impl Stream {
    fn reasoning(&mut self, turn: &Turn, thinking: &str) {
        let done = reasoning(turn, thinking);
        let mut start = done.clone();
        start["summary"] = json!([]);
        let id = done["id"].clone();
        self.begin(start);
        let at = json!({"item_id": id, "output_index": self.output.len(), "summary_index": 0});
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        self.event_at("response.reasoning_summary_part.added", &at, json!({"part": part("")}));
        for chunk in turn.chunks(thinking) {
            self.event_at("response.reasoning_summary_text.delta", &at, json!({"delta": chunk}));
        }
        self.event_at("response.reasoning_summary_text.done", &at, json!({"text": thinking}));
        self.event_at("response.reasoning_summary_part.done", &at, json!({"part": part(thinking)}));
        self.end(done);
    }

    fn message(&mut self, turn: &Turn, text: &str) {
        let done = message(turn, text);
        let mut start = done.clone();
        start["content"] = json!([]);
        start["status"] = json!("in_progress");
        let id = done["id"].clone();
        self.begin(start);
        let at = json!({"item_id": id, "output_index": self.output.len(), "content_index": 0});
        self.event_at("response.content_part.added", &at, json!({"part": text_part("")}));
        for chunk in turn.chunks(text) {
            self.event_at("response.output_text.delta", &at, json!({"delta": chunk, "logprobs": []}));
        }
        self.event_at("response.output_text.done", &at, json!({"text": text, "logprobs": []}));
        self.event_at("response.content_part.done", &at, json!({"part": text_part(text)}));
        self.end(done);
    }

    fn call(&mut self, turn: &Turn, index: usize, call: &Call) {
        let done = tool_call(turn, index, call);
        let (event, field) = match call.input {
            CallInput::Object(_) => ("response.function_call_arguments", "arguments"),
            CallInput::FreeText(_) => ("response.custom_tool_call_input", "input"),
        };
        let mut start = done.clone();
        start[field] = json!("");
        start["status"] = json!("in_progress");
        let id = done["id"].clone();
        self.begin(start);
        let at = json!({"item_id": id, "output_index": self.output.len()});
        let arguments = call.arguments();
        for chunk in turn.chunks(&arguments) {
            self.event_at(&format!("{event}.delta"), &at, json!({"delta": chunk}));
        }
        self.event_at(&format!("{event}.done"), &at, json!({field: arguments}));
        self.end(done);
    }

    fn begin(&mut self, item: Value) {
        let at = json!({"output_index": self.output.len()});
        self.event_at("response.output_item.added", &at, json!({"item": item}));
    }

    fn end(&mut self, item: Value) {
        let at = json!({"output_index": self.output.len()});
        self.event_at("response.output_item.done", &at, json!({"item": item}));
        self.output.push(item);
    }

    fn event_at(&mut self, name: &str, at: &Value, mut data: Value) {
        for (key, value) in at.as_object().into_iter().flatten() {
            data[key] = value.clone();
        }
        self.event(name, data);
    }

    fn event(&mut self, name: &str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.events.len());
        self.events.push(format!("event: {name}\ndata: {data}\n\n"));
    }
}

fn reasoning(turn: &Turn, thinking: &str) -> Value {
    let summary = json!([{"type": "summary_text", "text": thinking}]);
    json!({"type": "reasoning", "id": format!("rs_{}", turn.number), "summary": summary, "encrypted_content": null})
}

fn message(turn: &Turn, text: &str) -> Value {
    json!({
        "type": "message",
        "id": format!("msg_{}", turn.number),
        "status": "completed",
        "role": "assistant",
        "content": [text_part(text)],
    })
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn tool_call(turn: &Turn, index: usize, call: &Call) -> Value {
    let (kind, field, prefix) = match call.input {
        CallInput::Object(_) => ("function_call", "arguments", "fc"),
        CallInput::FreeText(_) => ("custom_tool_call", "input", "ctc"),
    };
    json!({
        "type": kind,
        "id": format!("{prefix}_{}_{index}", turn.number),
        "call_id": turn.call_id(index),
        "status": "completed",
        "name": call.name,
        field: call.arguments(),
    })
}

fn response(turn: &Turn, status: &str, output: Vec<Value>) -> Value {
    let usage = match status {
        "completed" => usage(turn),
        _ => Value::Null,
    };
    json!({
        "id": format!("resp_{}", turn.number),
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": turn.model,
        "output": output,
        "error": null,
        "incomplete_details": null,
        "parallel_tool_calls": true,
        "usage": usage,
    })
}

fn usage(turn: &Turn) -> Value {
    // What was read from a cache is part of the input here, unlike in Anthropic's API.
    let input = turn.usage.input + turn.usage.cache_read + turn.usage.cache_write;
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": turn.usage.cache_read},
        "output_tokens": turn.usage.output,
        "output_tokens_details": {"reasoning_tokens": turn.usage.reasoning},
        "total_tokens": input + turn.usage.output,
    })
}
