//! Each API's stream, put together again as its clients do, is what its answer in one piece is.

use cofferdam_scripted_model::{Answer, Script, ScriptedModel, ToolCall, Usage};
use serde_json::{Value, json};

use crate::client::{asking, post};

fn script() -> Script {
    let write = ToolCall::WriteFile { path: "ä.txt".to_owned(), content: "\"one\"\n".to_owned() };
    let shell = ToolCall::Shell { command: "ls".to_owned() };
    let usage = Usage { input: 70, output: 30, cache_read: 20, cache_write: 10, reasoning: 5 };
    let answer = Answer::tools([write, shell])
        .saying("Größe, in more than one chunk.")
        .thinking("This too is longer than a chunk.")
        .costing(usage);
    Script::new([answer.times(2)])
}

async fn both(path: &str) -> (Vec<Value>, Value) {
    let model = ScriptedModel::start(script());
    let stream = post(&model, path, &asking(path, true)).await.expect("an answer");
    let whole = post(&model, path, &asking(path, false)).await.expect("an answer");
    assert!(!stream.cut && !whole.cut);
    assert_eq!(whole.headers["content-type"], "application/json");
    (stream.events(), whole.json())
}

#[tokio::test]
async fn a_stream_of_messages_is_its_answer() {
    let (events, whole) = both("/v1/messages").await;
    let mut message = events[0]["message"].clone();
    let mut partial = String::new();
    for event in &events[1..] {
        let index = event["index"].as_u64().unwrap_or_default() as usize;
        let delta = &event["delta"];
        match event["type"].as_str().expect("a type") {
            "content_block_start" => {
                let blocks = message["content"].as_array_mut().expect("a list");
                assert_eq!(blocks.len(), index);
                blocks.push(event["content_block"].clone());
                partial.clear();
            }
            "content_block_delta" => match delta["type"].as_str().expect("a type") {
                "text_delta" => append(&mut message["content"][index]["text"], &delta["text"]),
                "thinking_delta" => append(&mut message["content"][index]["thinking"], &delta["thinking"]),
                "signature_delta" => append(&mut message["content"][index]["signature"], &delta["signature"]),
                "input_json_delta" => partial.push_str(delta["partial_json"].as_str().expect("a text")),
                other => panic!("{other}"),
            },
            "content_block_stop" if !partial.is_empty() => {
                message["content"][index]["input"] = serde_json::from_str(&partial).expect("JSON");
            }
            "content_block_stop" | "message_stop" => {}
            "message_delta" => {
                message["stop_reason"] = delta["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(events.last().expect("events")["type"], "message_stop");
    assert_eq!(without_ids(message.clone()), without_ids(whole.clone()));
    assert_eq!(whole["content"][1]["text"], "Größe, in more than one chunk.");
    assert_eq!(whole["content"][2]["input"], json!({"file_path": "ä.txt", "content": "\"one\"\n"}));
    assert_eq!(whole["content"][3]["name"], "Bash");
    assert_eq!(whole["stop_reason"], "tool_use");
    assert_eq!(whole["usage"]["cache_creation_input_tokens"], 10);
}

#[tokio::test]
async fn a_stream_of_responses_is_its_answer() {
    let (events, whole) = both("/v1/responses").await;
    let mut texts = vec![String::new(); 4];
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
        if event["type"].as_str().is_some_and(|kind| kind.ends_with(".delta")) {
            let index = event["output_index"].as_u64().expect("an index") as usize;
            texts[index].push_str(event["delta"].as_str().expect("a text"));
        }
    }
    let done: Vec<Value> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"].clone())
        .collect();
    let last = events.last().expect("events");
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["output"], json!(done));
    assert_eq!(without_ids(last["response"].clone()), without_ids(whole.clone()));
    assert_eq!(whole["output"][0]["summary"][0]["text"], texts[0]);
    assert_eq!(whole["output"][1]["content"][0]["text"], texts[1]);
    assert_eq!(whole["output"][2]["arguments"], texts[2]);
    assert_eq!(whole["output"][3]["arguments"], texts[3]);
    assert_eq!(whole["usage"]["input_tokens"], 100);
    assert_eq!(whole["usage"]["input_tokens_details"]["cached_tokens"], 20);
    assert_eq!(whole["usage"]["total_tokens"], 130);
}

#[tokio::test]
async fn a_stream_of_chat_completions_is_its_answer() {
    let (events, whole) = both("/v1/chat/completions").await;
    let mut message =
        json!({"role": "", "content": "", "reasoning_content": "", "tool_calls": [], "refusal": null});
    for event in events.iter().filter(|event| event["choices"] != json!([])) {
        let delta = &event["choices"][0]["delta"];
        for field in ["role", "content", "reasoning_content"] {
            append(&mut message[field], &delta[field]);
        }
        for part in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = part["index"].as_u64().expect("an index") as usize;
            let calls = message["tool_calls"].as_array_mut().expect("a list");
            if calls.len() == index {
                calls.push(json!({"id": part["id"], "type": part["type"], "function": part["function"]}));
            } else {
                append(&mut calls[index]["function"]["arguments"], &part["function"]["arguments"]);
            }
        }
    }
    let usage = &events.last().expect("events")["usage"];
    let finish = &events[events.len() - 2]["choices"][0]["finish_reason"];
    assert_eq!(without_ids(message), without_ids(whole["choices"][0]["message"].clone()));
    assert_eq!((usage, finish), (&whole["usage"], &whole["choices"][0]["finish_reason"]));
    assert_eq!(usage["prompt_tokens"], 100);
    assert_eq!(finish, "tool_calls");
}

#[tokio::test]
async fn usage_of_chat_completions_is_streamed_only_if_asked_for() {
    let model = ScriptedModel::start(Script::new([]));
    let mut body = asking("/v1/chat/completions", true);
    body["stream_options"] = Value::Null;
    let reply = post(&model, "/v1/chat/completions", &body).await.expect("an answer");
    assert!(reply.events().iter().all(|event| event["usage"].is_null()));
    assert!(reply.body.ends_with("data: [DONE]\n\n"));
}

fn append(to: &mut Value, part: &Value) {
    if let Some(part) = part.as_str() {
        *to = json!(format!("{}{part}", to.as_str().unwrap_or_default()));
    }
}

/// Two answers differ in their ids.
fn without_ids(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "id" && name != "call_id");
            fields.values_mut().for_each(|field| *field = without_ids(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_ids(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}
