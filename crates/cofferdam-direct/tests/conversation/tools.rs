//! Calls of tools, and results that meet a schema.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::EventType;
use cofferdam_direct::{Settings, Subtype, Tools};
use cofferdam_scripted_model::{Answer, Script, ToolCall};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::rig::{Echo, echo, lead, lead_with, say, settings};

fn raw(name: &str, input: Value) -> ToolCall {
    ToolCall::Raw { name: name.to_owned(), input }
}

#[tokio::test]
async fn parallel_calls_run_at_once_and_are_answered_in_their_order() {
    // Nobody passes the barrier unless all three are there.
    let waits = Some(Arc::new(Barrier::new(3)));
    let tools = Tools { own: vec![Arc::new(Echo { name: "Echo", waits })], ..Tools::default() };
    let script = Script::new([Answer::tools([say("a"), say("b"), say("c")]), Answer::text("ok")]);
    let settings = settings();
    let led = lead_with(&settings, &tools, script);
    let led = tokio::time::timeout(Duration::from_secs(60), led).await.expect("they run at once");
    assert_eq!((led.result(), led.ended.report.num_turns), ("ok", 4));
    let results = led.last_messages()[1]["content"].clone();
    let said: Vec<&Value> = results.as_array().unwrap().iter().map(|it| &it["content"][0]["text"]).collect();
    assert_eq!(said, ["a", "b", "c"]);
    let told = led.record.facts(EventType::AgentToolResult);
    assert_eq!(told[1]["output"], "b");
    assert_eq!((&told[1]["turn"], &told[1]["index"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn a_tool_that_fails_or_panics_is_told_to_the_model_which_goes_on() {
    let led = lead([Answer::tools([say("fail"), say("panic"), say("fine")]), Answer::text("ok")]).await;
    let results = led.last_messages()[1]["content"].clone();
    let errors: Vec<&Value> = results.as_array().unwrap().iter().map(|it| &it["is_error"]).collect();
    assert_eq!(errors, [true, true, false]);
    assert_eq!(results[1]["content"][0]["text"], "Echo failed.");
    assert_eq!((led.result(), led.ended.report.is_error), ("ok", false));
}

#[tokio::test]
async fn a_tool_without_permission_is_a_denial_and_one_that_is_none_is_not() {
    let tools = Tools { forbidden: vec!["WebFetch".to_owned()], ..echo() };
    let calls =
        [raw("WebFetch", json!({ "url": "https://a.example" })), raw("Bash", json!({ "command": "ls" }))];
    let script = Script::new([Answer::tools(calls), Answer::text("ok")]);
    let led = lead_with(&settings(), &tools, script).await;
    let results = led.last_messages()[1]["content"].clone();
    assert_eq!(results[0]["content"][0]["text"], "Permission denied: WebFetch may not be used here.");
    assert_eq!(results[1]["content"][0]["text"], "There is no tool `Bash`.");
    assert_eq!((&results[0]["is_error"], &results[1]["is_error"]), (&json!(true), &json!(true)));
    let denials = json!(led.ended.report.permission_denials);
    let input = json!({ "url": "https://a.example" });
    let id = &results[0]["tool_use_id"];
    assert_eq!(denials, json!([{ "tool_name": "WebFetch", "tool_use_id": id, "tool_input": input }]));
    assert_eq!(led.result(), "ok");
}

#[tokio::test]
async fn the_vendors_tools_are_offered_and_never_called_here() {
    let search = json!({ "type": "web_search_20250305", "name": "web_search", "max_uses": 5 });
    let tools = Tools { of_vendor: vec![search.clone()], ..Tools::default() };
    let led = lead_with(&settings(), &tools, Script::new([Answer::text("ok")])).await;
    assert_eq!(led.requests()[0]["tools"], json!([search]));
    assert_eq!(led.record.facts(EventType::AgentSession)[0]["tools"], json!(["web_search"]));
}

fn asking_for_a_number() -> Settings {
    let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    Settings { output_schema: Some(schema), ..settings() }
}

fn result(input: Value) -> Answer {
    Answer::tools([raw("StructuredOutput", input)])
}

#[tokio::test]
async fn a_result_that_meets_the_schema_ends_it_at_once() {
    let led = lead_with(&asking_for_a_number(), &echo(), Script::new([result(json!({ "n": 4 }))])).await;
    let report = &led.ended.report;
    assert_eq!((report.subtype, report.is_error, report.num_turns), (Subtype::Success, false, 2));
    assert_eq!((led.result(), &report.structured_output), (r#"{"n":4}"#, &Some(json!({ "n": 4 }))));
    assert_eq!(led.model.calls(), 1);
}

#[tokio::test]
async fn a_result_that_does_not_meet_it_is_given_again() {
    let script =
        Script::new([result(json!({ "n": "x" })), Answer::text("It is 5."), result(json!({ "n": 5 }))]);
    let led = lead_with(&asking_for_a_number(), &echo(), script).await;
    assert_eq!(led.ended.report.structured_output, Some(json!({ "n": 5 })));
    let told = led.last_messages();
    let complaint = told[1]["content"][0]["content"][0]["text"].as_str().unwrap();
    assert!(complaint.starts_with("The result does not meet the schema: /n: "), "{complaint}");
    assert!(told[2]["content"][0]["text"].as_str().unwrap().contains("StructuredOutput"), "{}", told[2]);
}

#[tokio::test]
async fn a_model_that_gives_no_such_result_has_failed() {
    for never in [result(json!({ "n": "x" })), Answer::text("It is 5.")] {
        let script = Script::new([]).ending_with(never);
        let led = lead_with(&asking_for_a_number(), &echo(), script).await;
        let report = &led.ended.report;
        assert_eq!(report.subtype, Subtype::ErrorMaxStructuredOutputRetries);
        assert_eq!((report.is_error, report.num_turns, led.model.calls()), (true, 6, 5));
        assert_eq!((report.result.as_deref(), &report.structured_output), (None, &None));
    }
}

/// What the model is told of a result.
async fn told_of(schema: Value, input: Value) -> String {
    let settings = Settings { output_schema: Some(schema), ..settings() };
    let led = lead_with(&settings, &echo(), Script::new([]).ending_with(result(input))).await;
    match led.model.calls() {
        1 => "taken".to_owned(),
        _ => led.last_messages()[1]["content"][0]["content"][0]["text"].as_str().unwrap().to_owned(),
    }
}

#[tokio::test]
async fn a_schema_without_bounds_is_not_evaluated() {
    // 2^28 evaluations; as of a run that was accepted before such schemas were refused.
    let doubled = |at: usize| {
        let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
        (format!("d{at}"), json!({ "anyOf": [next, next] }))
    };
    let mut definitions: serde_json::Map<String, Value> = (0..28).map(doubled).collect();
    definitions.insert("d28".to_owned(), json!({ "type": "number" }));
    let told = told_of(json!({ "$defs": definitions, "$ref": "#/$defs/d0" }), json!({ "n": 1 })).await;
    assert!(told.starts_with("The schema cannot be used: "), "{told}");
}

#[tokio::test]
async fn patterns_are_matched_without_going_back() {
    let schema = |pattern: &str| json!({ "properties": { "n": { "pattern": pattern } } });
    let nested = schema("^(a|a)*(a|a)*(a|a)*$");
    let long = "a".repeat(20_000);
    assert_eq!(told_of(nested.clone(), json!({ "n": long })).await, "taken");
    let told = told_of(nested, json!({ "n": format!("{long}b") })).await;
    assert!(told.starts_with("The result does not meet the schema: /n: "), "{told}");
    for unusable in ["(a{1000}){1000}", r"(a)\1"] {
        let told = told_of(schema(unusable), json!({ "n": "a" })).await;
        assert!(told.starts_with("The schema cannot be used: "), "{told}");
    }
}

#[tokio::test]
async fn a_deep_result_for_a_deep_schema_does_not_use_up_the_stack() {
    let own = json!({ "properties": { "n": { "$ref": "#" } } });
    let schema = (0..58).fold(own, |inner, _| json!({ "allOf": [inner] }));
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "n": inner }));
    assert_eq!(told_of(schema, deep).await, "taken");
}

#[tokio::test]
async fn what_is_wrong_with_a_long_result_is_not_kept_for_each_branch() {
    let branch = |at: usize| json!({ "properties": { "n": { "items": { "const": at } } } });
    let branches: Vec<Value> = (0..1_000).map(branch).collect();
    let told = told_of(json!({ "anyOf": branches }), json!({ "n": vec!["x"; 1_000] })).await;
    assert!(told.ends_with("is too long to say where."), "{told}");
}
