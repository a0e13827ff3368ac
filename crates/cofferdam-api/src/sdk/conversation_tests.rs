use cofferdam_core::NewEvent;

use super::*;

struct Said(Vec<Event>);

impl Said {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn say(mut self, attempt: u32, event_type: EventType, data: Value) -> Self {
        let NewEvent { at_ms, event_type, data, .. } = NewEvent::new(1, event_type, data);
        let seq = self.0.len() as u64 + 1;
        self.0.push(Event { seq, at_ms, event_type, attempt: Some(attempt), data });
        self
    }

    fn conversation(&self) -> Conversation {
        let mut conversation = Conversation::of(&RunId::new(1_700_000_000_000, 0xabcdef));
        self.0.iter().for_each(|event| conversation.take(event));
        conversation
    }
}

const ENDED: Ending<'static> =
    Ending { model: "asked", duration_ms: 1_200, cost_micro_usd: 10_000, success: true, error: None };

fn usage(turn: u32, message: &str, stop: &str) -> Value {
    json!({ "scope": "call", "turn": turn, "message_id": message, "stop_reason": stop, "input_tokens": 10,
        "output_tokens": 5, "cache_read_input_tokens": 3 })
}

fn two_turns() -> Said {
    use EventType::{
        AgentFinished, AgentMessage, AgentSession, AgentThinking, AgentToolResult, AgentToolUse, AgentUsage,
    };
    Said::new()
        .say(1, EventType::RunQueued, json!({}))
        .say(1, AgentSession, json!({ "model": "claude-x", "tools": ["TodoWrite"] }))
        .say(1, AgentThinking, json!({ "text": "hm", "turn": 1, "index": 0 }))
        .say(1, AgentMessage, json!({ "text": "I look.", "turn": 1, "index": 1 }))
        .say(
            1,
            AgentToolUse,
            json!({ "id": "t1", "name": "TodoWrite", "input": { "todos": [] }, "turn": 1, "index": 2 }),
        )
        .say(1, AgentUsage, usage(1, "m1", "tool_use"))
        .say(
            1,
            AgentToolResult,
            json!({ "id": "t1", "output": "done", "is_error": false, "turn": 1, "index": 0 }),
        )
        .say(1, AgentMessage, json!({ "text": "4", "turn": 2, "index": 0 }))
        .say(1, AgentUsage, usage(2, "m2", "end_turn"))
        .say(
            1,
            AgentFinished,
            json!({ "how": "finished", "result": { "result": "4", "subtype": "success",
            "num_turns": 2, "stop_reason": "end_turn" } }),
        )
}

#[test]
fn a_conversation_is_told_as_the_sdk_tells_it() {
    let messages = two_turns().conversation().messages(&ENDED);
    let kinds: Vec<&str> = messages.iter().map(|message| message["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "user", "assistant", "result"]);
    assert_eq!(messages[0]["tools"], json!(["TodoWrite"]));
    let first = &messages[1]["message"];
    assert_eq!(
        (&first["model"], &first["stop_reason"], &first["id"]),
        (&json!("claude-x"), &json!("tool_use"), &json!("m1"))
    );
    let blocks: Vec<&str> =
        first["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(blocks, ["thinking", "text", "tool_use"]);
    assert_eq!(
        messages[2]["message"]["content"],
        json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "done", "is_error": false }])
    );
    let result = &messages[4];
    assert_eq!((&result["subtype"], &result["result"]), (&json!("success"), &json!("4")));
    assert_eq!((&result["num_turns"], &result["total_cost_usd"]), (&json!(2), &json!(0.01)));
    assert_eq!(
        (&result["usage"]["input_tokens"], &result["usage"]["cache_read_input_tokens"]),
        (&json!(20), &json!(6))
    );
    assert_eq!(result["modelUsage"]["claude-x"]["outputTokens"], 10);
    assert_eq!(result["permission_denials"], json!([]));
    for message in &messages {
        assert_eq!(message["session_id"], json!(RunId::new(1_700_000_000_000, 0xabcdef)));
    }
    let names: std::collections::BTreeSet<_> =
        messages.iter().map(|message| message["uuid"].as_str().unwrap()).collect();
    assert_eq!(names.len(), messages.len(), "each message has a name of its own");
}

#[test]
fn a_turn_that_an_attempt_left_half_said_is_told_as_the_next_one_said_it() {
    let events = Said::new()
        .say(1, EventType::AgentMessage, json!({ "text": "I look.", "turn": 1, "index": 0 }))
        .say(
            1,
            EventType::AgentToolUse,
            json!({ "id": "t1", "name": "Read", "input": {}, "turn": 1, "index": 1 }),
        )
        .say(1, EventType::AgentMessage, json!({ "text": "It says that", "turn": 2, "index": 0 }))
        .say(1, EventType::AgentMessage, json!({ "text": "lost", "turn": 2, "index": 1 }))
        // The second attempt answers the tool that the first one was asked for, and says the second turn anew.
        .say(
            2,
            EventType::AgentToolResult,
            json!({ "id": "t1", "output": "text", "is_error": false, "turn": 1, "index": 0 }),
        )
        .say(2, EventType::AgentMessage, json!({ "text": "It says four.", "turn": 2, "index": 0 }));
    let messages = events.conversation().messages(&ENDED);
    let kinds: Vec<&str> = messages.iter().map(|message| message["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "user", "assistant", "result"]);
    assert_eq!(messages[1]["message"]["content"].as_array().unwrap().len(), 2);
    assert_eq!(messages[3]["message"]["content"], json!([{ "type": "text", "text": "It says four." }]));
    assert_eq!(messages[4]["num_turns"], 2);
}

#[test]
fn a_run_that_never_began_has_a_result_that_says_why() {
    let ending = Ending { success: false, error: Some("the node was lost"), ..ENDED };
    let messages = Said::new().conversation().messages(&ending);
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["model"], "asked");
    assert_eq!(messages[1]["subtype"], "error_during_execution");
    assert_eq!(
        (&messages[1]["is_error"], &messages[1]["errors"]),
        (&json!(true), &json!(["the node was lost"]))
    );
    assert!(messages[1].get("result").is_none());
}

#[test]
fn how_a_conversation_failed_is_the_subtype_of_its_result() {
    let finished = json!({ "how": "finished", "result": { "subtype": "error_max_turns", "num_turns": 3,
        "permission_denials": [{ "tool_name": "Bash", "tool_use_id": "t9", "tool_input": {} }] } });
    let events = two_turns().say(1, EventType::AgentFinished, finished);
    let ending = Ending { success: false, error: Some("3 turns were not enough"), ..ENDED };
    let messages = events.conversation().messages(&ending);
    let result = messages.last().unwrap();
    assert_eq!((&result["subtype"], &result["num_turns"]), (&json!("error_max_turns"), &json!(3)));
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
}

#[test]
fn what_people_say_is_a_message_of_the_user_in_its_place() {
    use EventType::{AgentMessage, AgentToolResult, AgentToolUse, MessageDelivered};
    let delivered = |turn: u32, text: &str| json!({ "id": 1, "as": "steer", "turn": turn, "text": text });
    let events = Said::new()
        .say(1, MessageDelivered, delivered(0, "in French"))
        .say(1, AgentToolUse, json!({ "id": "t1", "name": "Read", "input": {}, "turn": 1, "index": 0 }))
        // A second attempt answers the tool and delivers two messages; what the first one said stays.
        .say(2, AgentToolResult, json!({ "id": "t1", "output": "x", "turn": 1, "index": 0 }))
        .say(2, MessageDelivered, delivered(1, "be brief"))
        .say(2, MessageDelivered, delivered(1, "and kind"))
        .say(2, AgentMessage, json!({ "text": "Oui.", "turn": 2, "index": 0 }))
        .say(2, MessageDelivered, delivered(2, "and why?"))
        .say(2, AgentMessage, json!({ "text": "Parce que.", "turn": 3, "index": 0 }));
    let messages = events.conversation().messages(&ENDED);
    let said: Vec<String> = messages[1..messages.len() - 1]
        .iter()
        .map(|message| {
            let blocks = message["message"]["content"].as_array().unwrap().iter();
            let words = blocks.map(|block| block["text"].as_str().or(block["type"].as_str()).unwrap());
            format!("{}: {}", message["type"].as_str().unwrap(), words.collect::<Vec<_>>().join(", "))
        })
        .collect();
    let expected = [
        "user: in French",
        "assistant: tool_use",
        "user: tool_result",
        "user: be brief",
        "user: and kind",
        "assistant: Oui.",
        "user: and why?",
        "assistant: Parce que.",
    ];
    assert_eq!(said, expected);
    assert_eq!(messages.last().unwrap()["num_turns"], 3);
}

#[test]
fn how_long_the_models_server_took_is_added_up() {
    let events = Said::new()
        .say(1, EventType::ModelUsage, json!({ "duration_ms": 300, "tokens": 7 }))
        .say(1, EventType::ModelError, json!({ "kind": "overloaded" }))
        .say(2, EventType::ModelUsage, json!({ "duration_ms": 45, "tokens": 9 }));
    let messages = events.conversation().messages(&ENDED);
    let result = messages.last().unwrap();
    assert_eq!((&result["duration_api_ms"], &result["duration_ms"]), (&json!(345), &json!(1_200)));
}

#[test]
fn the_status_is_the_one_that_the_models_server_answered_with() {
    let finished = json!({ "how": "finished", "result": { "subtype": "success", "api_error_status": 400 } });
    let ended = |said: Said| said.say(1, EventType::AgentFinished, finished.clone()).conversation();
    let refused = |said: Said| said.say(1, EventType::ModelError, json!({ "kind": "quota", "status": 429 }));
    let first = ended(refused(Said::new()));
    assert_eq!(first.api_error_status(), Some(429));
    assert_eq!(first.messages(&ENDED).last().unwrap()["api_error_status"], 429);
    // That one was got over, and it failed for another reason.
    let answered = refused(Said::new()).say(1, EventType::ModelUsage, json!({ "duration_ms": 1 }));
    assert_eq!(ended(answered).api_error_status(), Some(400));
    assert_eq!(refused(two_turns()).conversation().api_error_status(), None);
}

#[test]
fn what_the_vendor_searched_is_part_of_the_answer_and_what_a_person_says_is_not() {
    let events = Said::new()
        .say(1, EventType::AgentToolUse,
            json!({ "id": "s1", "name": "web_search", "input": { "query": "x" }, "turn": 1, "index": 0, "by": "vendor" }))
        .say(1, EventType::AgentToolResult,
            json!({ "id": "s1", "output": "A page https://a.example", "turn": 1, "index": 1, "by": "vendor" }))
        .say(1, EventType::AgentMessage, json!({ "text": "Found.", "turn": 1, "index": 2 }))
        .say(1, EventType::MessageDelivered, json!({ "id": 1, "as": "steer", "text": "be brief" }))
        .say(1, EventType::AgentMessage, json!({ "text": "Yes.", "turn": 2, "index": 0 }));
    let messages = events.conversation().messages(&ENDED);
    let content = messages[1]["message"]["content"].as_array().unwrap();
    let kinds: Vec<&str> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["server_tool_use", "web_search_tool_result", "text"]);
    assert_eq!(messages[2]["message"]["content"], json!([{ "type": "text", "text": "be brief" }]));
    assert_eq!(messages[3]["message"]["content"][0]["text"], "Yes.");
}

#[test]
fn a_name_of_a_message_is_a_uuid() {
    let name = uuid(&RunId::new(1_700_000_000_000, u128::MAX), 3);
    assert_eq!(name.len(), 36);
    assert_eq!(
        (&name[14..15], name.split('-').map(str::len).collect::<Vec<_>>()),
        ("8", vec![8, 4, 4, 4, 12])
    );
}
