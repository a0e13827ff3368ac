//! How a conversation goes on and ends, for each reason that a model stops for.

use cofferdam_core::{Effort, EventType, Thinking};
use cofferdam_direct::{History, Settings, Subtype, Tools, Turn, Usage, system_prompt};
use cofferdam_scripted_model::{Answer, Script, ScriptedModel, Usage as Cost};
use serde_json::{Value, json};

use crate::rig::{echo, go_on, lead, lead_with, say, settings};

#[test]
fn a_system_prompt_takes_the_place_of_ours_and_another_is_added() {
    assert!(system_prompt(None, None).starts_with("You answer questions"));
    assert_eq!(system_prompt(Some("Only rhymes."), None), "Only rhymes.");
    assert_eq!(system_prompt(Some("Only rhymes."), Some("And short.")), "Only rhymes.\n\nAnd short.");
    let added = system_prompt(None, Some("In French."));
    assert!(added.starts_with("You answer questions") && added.ends_with("\n\nIn French."));
}

#[tokio::test]
async fn one_answer_is_one_record() {
    let led = lead([Answer::text("It is 4.")]).await;
    let report = &led.ended.report;
    assert_eq!((report.subtype, report.is_error, report.num_turns), (Subtype::Success, false, 1));
    assert_eq!((led.result(), report.stop_reason.as_deref()), ("It is 4.", Some("end_turn")));
    assert_eq!(led.record.shown_text(), "It is 4.");
    let [entry] = &led.record.entries()[..] else { panic!("{:#?}", led.record.entries()) };
    assert_eq!(entry.turns.len(), 1);
    let types: Vec<_> = entry.facts.iter().map(|fact| fact.event_type).collect();
    use EventType::{AgentFinished, AgentMessage, AgentSession, AgentUsage};
    assert_eq!(types, [AgentSession, AgentMessage, AgentUsage, AgentFinished]);
    assert_eq!(entry.facts[1].data, json!({ "text": "It is 4.", "turn": 1, "index": 0 }));
    assert_eq!(entry.facts[3].data["report"], json!({ "ok": true, "message": "It is 4." }));
    assert_eq!(entry.facts[3].data["result"], json!(report));
}

#[tokio::test]
async fn a_request_has_what_was_asked_for_and_marks_what_never_changes() {
    let settings = Settings {
        thinking: Some(Thinking::Enabled { budget_tokens: 2000 }),
        effort: Some(Effort::Low),
        ..settings()
    };
    let script = Script::new([Answer::tools([say("hi")]), Answer::text("ok")]);
    let led = lead_with(&settings, &echo(), script).await;
    let [first, second] = &led.requests()[..] else { panic!("two requests") };
    let cached = json!({ "type": "ephemeral" });
    for body in [first, second] {
        assert_eq!(body["system"], json!([{ "type": "text", "text": "Be brief.", "cache_control": cached }]));
        let thinking = json!({ "type": "enabled", "budget_tokens": 2000, "display": "summarized" });
        assert_eq!(body["thinking"], thinking);
        assert_eq!(body["output_config"], json!({ "effort": "low" }));
        assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(1000), &json!(true)));
        assert_eq!(body["tools"][0]["name"], "Echo");
    }
    let last = &second["messages"][2]["content"][0];
    assert_eq!((&last["type"], &last["cache_control"]), (&json!("tool_result"), &cached));
    assert_eq!(second["messages"][0]["content"], json!([{ "type": "text", "text": "Do it" }]));
}

#[tokio::test]
async fn what_was_thought_goes_back_with_its_signature() {
    let led = lead([Answer::tools([say("hi")]).thinking("hm"), Answer::text("ok")]).await;
    let thought = &led.requests()[1]["messages"][1]["content"][0];
    assert_eq!(*thought, json!({ "type": "thinking", "thinking": "hm", "signature": "c2NyaXB0ZWQ=" }));
    let told = led.record.facts(EventType::AgentThinking);
    assert_eq!(told, [json!({ "text": "hm", "turn": 1, "index": 0 })]);
}

#[tokio::test]
async fn an_answer_that_ran_out_of_tokens_is_gone_on_with_three_times() {
    let led = lead([Answer::text("One, ").stopping("max_tokens"), Answer::text("two.")]).await;
    assert_eq!((led.result(), led.ended.report.num_turns, led.model.calls()), ("two.", 1, 2));

    let script = Script::new([]).ending_with(Answer::text("more ").stopping("max_tokens"));
    let led = lead_with(&settings(), &echo(), script).await;
    let report = &led.ended.report;
    assert_eq!((report.subtype, report.is_error, led.model.calls()), (Subtype::Success, true, 4));
    assert!(led.result().contains("limit of 1000 tokens"), "{}", led.result());
}

#[tokio::test]
async fn a_call_in_an_answer_that_ran_out_of_tokens_is_answered() {
    let answer = Answer::tools([say("hi")]).stopping("max_tokens");
    let led = lead([answer, Answer::text("ok")]).await;
    assert_eq!((led.result(), led.ended.report.num_turns), ("ok", 2));
}

#[tokio::test]
async fn a_paused_turn_is_sent_again_as_it_is() {
    let search =
        json!({ "type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": { "query": "q" } });
    let paused = Answer::default().with_blocks([search.clone()]).stopping("pause_turn");
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "srv_1",
        "content": [{ "type": "web_search_result", "title": "A", "url": "https://a.example", "encrypted_content": "x" }] });
    let led = lead([paused, Answer::text("Found.").with_blocks([found])]).await;
    assert_eq!((led.result(), led.ended.report.num_turns), ("Found.", 1));
    let mut sent = search;
    sent["cache_control"] = json!({ "type": "ephemeral" });
    assert_eq!(led.last_messages()[1], json!({ "role": "assistant", "content": [sent] }));
    let used = led.record.facts(EventType::AgentToolUse);
    assert_eq!((&used[0]["name"], &used[0]["by"]), (&json!("web_search"), &json!("vendor")));
    let found = led.record.facts(EventType::AgentToolResult);
    assert_eq!(found[0]["output"], "A https://a.example");
}

#[tokio::test]
async fn a_refusal_is_a_failure_and_not_asked_again() {
    for (answer, result) in [
        (Answer::text("No."), "the model refused to answer: No."),
        (Answer::default(), "the model refused to answer"),
    ] {
        let led = lead([answer.stopping("refusal")]).await;
        let report = &led.ended.report;
        assert_eq!((report.subtype, report.is_error, report.num_turns), (Subtype::Success, true, 1));
        assert_eq!((led.result(), report.stop_reason.as_deref()), (result, Some("refusal")));
        assert_eq!(led.model.calls(), 1);
    }
}

#[tokio::test]
async fn a_full_context_is_a_failure() {
    let led = lead([Answer::text("Too").stopping("model_context_window_exceeded")]).await;
    assert!(led.ended.report.is_error && led.result().contains("context window"), "{:?}", led.ended);
    assert_eq!(led.model.calls(), 1);
}

#[tokio::test]
async fn a_stop_sequence_ends_it() {
    let led = lead([Answer::text("Seq").stopping("stop_sequence")]).await;
    assert_eq!((led.result(), led.ended.report.is_error), ("Seq", false));
}

#[tokio::test]
async fn a_model_that_says_nothing_is_asked_once_more() {
    let led = lead([Answer::default(), Answer::text("Here.")]).await;
    assert_eq!((led.result(), led.ended.report.num_turns), ("Here.", 2));
    // The API takes no empty message, so the one that is empty is not sent back.
    let roles: Vec<Value> =
        led.requests()[1]["messages"].as_array().unwrap().iter().map(|it| it["role"].clone()).collect();
    assert_eq!(roles, ["user"]);

    let led = lead_with(&settings(), &echo(), Script::new([]).ending_with(Answer::default())).await;
    assert_eq!((led.result(), led.ended.report.is_error, led.model.calls()), ("", false, 2));
}

#[tokio::test]
async fn a_model_that_calls_nothing_though_it_says_so_is_told() {
    let led = lead([Answer::text("x").stopping("tool_use"), Answer::text("ok")]).await;
    assert_eq!((led.result(), led.ended.report.num_turns), ("ok", 2));
    let led =
        lead_with(&settings(), &echo(), Script::new([]).ending_with(Answer::text("x").stopping("tool_use")))
            .await;
    assert_eq!((led.result(), led.model.calls()), ("x", 2));
}

#[tokio::test]
async fn a_model_that_calls_tools_for_ever_is_ended_after_its_turns() {
    let settings = Settings { max_turns: 3, ..settings() };
    let script = Script::new([]).ending_with(Answer::tools([say("a"), say("b")]));
    let led = lead_with(&settings, &echo(), script).await;
    let report = &led.ended.report;
    assert_eq!((report.subtype, report.is_error, report.num_turns), (Subtype::ErrorMaxTurns, true, 4));
    assert_eq!((report.result.as_deref(), led.model.calls()), (None, 3));
    assert_eq!(report.errors, ["the conversation took as many turns as it may (3)"]);
}

#[tokio::test]
async fn what_all_answers_cost_is_added_up() {
    let cost = Cost { input: 5, output: 7, cache_read: 11, cache_write: 13, reasoning: 0 };
    let led = lead([Answer::tools([say("a")]).costing(cost), Answer::text("ok").costing(cost)]).await;
    let sum = Usage {
        input_tokens: 10,
        output_tokens: 14,
        cache_read_input_tokens: 22,
        cache_creation_input_tokens: 26,
        web_search_requests: 0,
    };
    assert_eq!(led.ended.report.usage, sum);
    let calls = led.record.facts(EventType::AgentUsage);
    assert_eq!((calls.len(), &calls[1]["turn"], &calls[1]["scope"]), (2, &json!(2), &json!("call")));
}

#[tokio::test]
async fn unicode_arrives_as_it_was_said() {
    let text = "\u{1f469}\u{200d}\u{1f467} \u{17c}\u{f3}\u{142}\u{107} \u{202e}\u{1d11e}\u{0}";
    let led = lead([Answer { chunk_chars: 1, ..Answer::text(text) }]).await;
    assert_eq!((led.result(), led.record.shown_text().as_str()), (text, text));
}

#[tokio::test]
async fn a_resumed_conversation_has_what_was_said_before_and_counts_its_own_turns() {
    let before = lead([Answer::tools([say("a")]).thinking("hm"), Answer::text("one")]).await;
    let mut turns = vec![Turn::prompt("Do it")];
    turns.extend(before.record.turns());
    let history = History { before: turns, own: vec![Turn::prompt("And now?")] };
    let model = ScriptedModel::start(Script::new([Answer::text("two")]).counting_asides());
    let settings = Settings { max_turns: 1, ..settings() };
    let led = go_on(&settings, &Tools::default(), history, model).await;
    assert_eq!((led.result(), led.ended.report.num_turns), ("two", 1));
    assert_eq!(led.ended.report.usage.output_tokens, 20);
    let messages = led.requests()[0]["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 5);
    assert_eq!(messages[1]["content"][0]["signature"], "c2NyaXB0ZWQ=");
    assert_eq!(messages[4]["content"][0]["text"], "And now?");
}

#[tokio::test]
async fn it_goes_on_from_wherever_a_crash_left_it_and_ends_the_same() {
    let answers = || {
        [
            Answer::tools([say("a"), say("b")]).thinking("hm"),
            Answer::text("One, ").stopping("max_tokens"),
            Answer::text("two."),
        ]
    };
    let whole = lead(answers()).await;
    let turns = [vec![Turn::prompt("Do it")], whole.record.turns()].concat();
    for kept in 1..=turns.len() {
        let said = turns[..kept].iter().filter(|turn| turn.role() == "assistant").count();
        let model = ScriptedModel::start(Script::new(answers().into_iter().skip(said)).counting_asides());
        let history = History { before: Vec::new(), own: turns[..kept].to_vec() };
        let led = go_on(&settings(), &echo(), history, model).await;
        assert_eq!(led.ended.report, whole.ended.report, "after {kept} turns");
        assert_eq!(led.model.calls(), 3 - said, "after {kept} turns");
    }
}

#[test]
fn turns_read_back_as_they_were_written() {
    let turns = [
        Turn::prompt("x"),
        Turn::Assistant {
            id: "msg_1".to_owned(),
            content: vec![json!({ "type": "thinking", "thinking": "é", "signature": "s" })],
            model: "m".to_owned(),
            stop_reason: "end_turn".to_owned(),
            usage: Usage { input_tokens: 1, ..Usage::default() },
        },
    ];
    for turn in turns {
        let written = serde_json::to_string(&turn).unwrap();
        assert_eq!(serde_json::from_str::<Turn>(&written).unwrap(), turn, "{written}");
    }
}
