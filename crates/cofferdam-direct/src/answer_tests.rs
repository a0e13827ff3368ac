use super::*;

fn assembled(events: &[Value]) -> Result<Option<Answer>, Fault> {
    let mut assembly = Assembly::default();
    for event in events {
        assembly.take(event.to_string().as_bytes(), &mut |_| {})?;
    }
    Ok(assembly.finish())
}

fn start() -> Value {
    json!({ "type": "message_start", "message": { "model": "m", "usage": { "input_tokens": 7, "output_tokens": 1 } } })
}

fn block(index: usize, content_block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": content_block })
}

fn delta(index: usize, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn close(index: usize) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

fn end(reason: &str) -> [Value; 2] {
    let usage = json!({ "output_tokens": 9, "server_tool_use": { "web_search_requests": 2 } });
    let delta = json!({ "stop_reason": reason });
    [json!({ "type": "message_delta", "delta": delta, "usage": usage }), json!({ "type": "message_stop" })]
}

#[test]
fn blocks_of_every_type_are_kept_as_they_were_sent() {
    let search = json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": [{ "url": "https://a.example" }] });
    let mut events = vec![
        json!({ "type": "ping" }),
        start(),
        block(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "h" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "m" })),
        delta(0, json!({ "type": "signature_delta", "signature": "c2ln" })),
        close(0),
        block(1, json!({ "type": "redacted_thinking", "data": "eA==" })),
        close(1),
        block(2, search.clone()),
        close(2),
        block(3, json!({ "type": "text", "text": "" })),
        delta(3, json!({ "type": "text_delta", "text": "é" })),
        delta(3, json!({ "type": "citations_delta", "citation": { "url": "https://a.example" } })),
        close(3),
        block(4, json!({ "type": "tool_use", "id": "t", "name": "Read", "input": {} })),
        delta(4, json!({ "type": "input_json_delta", "partial_json": "{\"a\":" })),
        delta(4, json!({ "type": "input_json_delta", "partial_json": "1}" })),
        close(4),
        json!({ "type": "of_a_later_version", "index": 0 }),
    ];
    events.extend(end("tool_use"));
    let answer = assembled(&events).unwrap().unwrap();
    let expected = [
        json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln" }),
        json!({ "type": "redacted_thinking", "data": "eA==" }),
        search,
        json!({ "type": "text", "text": "é", "citations": [{ "url": "https://a.example" }] }),
        json!({ "type": "tool_use", "id": "t", "name": "Read", "input": { "a": 1 } }),
    ];
    assert_eq!(answer.content, expected);
    assert_eq!((answer.model.as_str(), answer.stop_reason.as_str()), ("m", "tool_use"));
    let usage = Usage { input_tokens: 7, output_tokens: 9, web_search_requests: 2, ..Usage::default() };
    assert_eq!(answer.usage, usage);
}

#[test]
fn an_input_that_is_no_object_is_kept_as_what_it_is() {
    for written in ["{\"a\": ", "[1]", "nonsense"] {
        let tool = block(0, json!({ "type": "tool_use", "id": "t", "name": "Read", "input": {} }));
        let part = delta(0, json!({ "type": "input_json_delta", "partial_json": written }));
        let [reason, stop] = end("max_tokens");
        let answer = assembled(&[start(), tool, part, close(0), reason, stop]).unwrap().unwrap();
        assert_eq!(answer.content[0]["input"], json!({ NOT_JSON: written }));
    }
}

#[test]
fn events_that_make_no_sense_are_no_answer() {
    let text = || block(0, json!({ "type": "text", "text": "" }));
    let thought = || delta(0, json!({ "type": "thinking_delta", "thinking": "x" }));
    let odd = delta(0, json!({ "type": "of_a_later_version" }));
    for events in [
        vec![text()],
        vec![start(), start()],
        vec![start(), block(1, json!({ "type": "text", "text": "" }))],
        vec![start(), block(0, json!({ "no": "type" }))],
        vec![start(), text(), thought()],
        vec![start(), thought()],
        vec![start(), close(0)],
        vec![start(), text(), odd],
        vec![json!({ "type": "message_start" })],
        vec![json!("a string")],
    ] {
        assert!(matches!(assembled(&events), Err(Fault::Senseless(_))), "{events:?}");
    }
}

#[test]
fn an_answer_without_an_end_or_a_reason_is_none() {
    let [reason, stop] = end("end_turn");
    assert_eq!(assembled(&[start(), reason]), Ok(None));
    assert_eq!(assembled(&[start(), stop]), Ok(None));
}

#[test]
fn a_failure_in_the_stream_is_told_as_one() {
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "busy" } });
    let told = Fault::Told { kind: "overloaded_error".to_owned(), message: "busy".to_owned() };
    assert_eq!(assembled(&[start(), error]), Err(told));
}
