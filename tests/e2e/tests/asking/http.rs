//! Answers and errors of `POST /execute/sdk`.

use std::time::Duration;

use cofferdam_e2e::processes::wait_until;
use cofferdam_scripted_model::{Answer, Script, ToolCall, Usage};
use cofferdam_test_marks::once;
use serde_json::json;

use super::stage::{KEY, Stage, call, read};

/// As the document has it, word for word.
const TWO_AND_TWO: &str = r#"{
    "prompt": "What is 2 + 2? Just give me the number.",
    "options": {
      "max_turns": 1
    }
  }"#;

#[once]
#[test]
fn the_seeds_question_is_answered() {
    let stage = Stage::new(Script::new([Answer::text("4")]));
    let (status, answer) = stage.ask(TWO_AND_TWO);
    assert_eq!(
        (status, &answer["success"], &answer["result"]),
        (200, &json!(true), &json!("4")),
        "{answer:#}"
    );
    let messages = answer["messages"].as_array().expect("a list");
    let kinds: Vec<&str> = messages.iter().filter_map(|message| message["type"].as_str()).collect();
    assert_eq!(kinds, ["system", "assistant", "result"], "{answer:#}");
    assert_eq!(messages[1]["message"]["content"], json!([{ "type": "text", "text": "4" }]), "{answer:#}");
    assert_eq!(messages[2]["subtype"], "success", "{answer:#}");
    let metadata = &answer["metadata"];
    assert!(metadata["execution_time_ms"].is_u64() && metadata["total_cost_usd"].is_number(), "{answer:#}");
    assert_eq!((&metadata["num_turns"], &metadata["model"]), (&json!(1), &json!("claude-sonnet-5")));
    assert!(metadata["usage"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{answer:#}");
    assert!(metadata["run_id"].as_str().is_some_and(|run| run.starts_with("run_")), "{answer:#}");
    stage.service.stop();
}

#[once]
#[test]
fn what_the_models_server_says_decides_the_error() {
    let wait = [("retry-after", "3600")];
    for (status, headers, refusal) in [
        (401, &[][..], (401, "AUTH_ERROR")),
        (403, &[], (401, "AUTH_ERROR")),
        (429, &wait, (429, "RATE_LIMITED")),
        (529, &wait, (502, "API_ERROR")),
        (400, &[], (502, "API_ERROR")),
    ] {
        let failed = headers
            .iter()
            .fold(Answer::error(status), |answer, (name, value)| answer.with_header(*name, *value));
        let stage = Stage::new(Script::new([failed.times(20)]));
        let (answered, body) = stage.ask(TWO_AND_TWO);
        assert_eq!(
            (answered, body["error_code"].as_str()),
            (refusal.0, Some(refusal.1)),
            "{status}: {body:#}"
        );
        assert_eq!(body["details"]["api_error_status"], status, "{body:#}");
        stage.service.stop();
    }
}

#[once]
#[test]
fn without_a_key_nothing_is_asked_and_the_answer_says_what_to_type() {
    let stage = Stage::on(None, Script::new([Answer::text("never")]), &[]);
    let (status, body) = stage.ask(TWO_AND_TWO);
    assert_eq!((status, body["error_code"].as_str()), (500, Some("MISSING_API_KEY")), "{body:#}");
    assert!(body.to_string().contains("ANTHROPIC_API_KEY"), "{body:#}");
    assert_eq!(stage.model.calls(), 0);
    stage.service.stop();
}

#[once]
#[test]
fn a_model_that_takes_too_long_is_a_timeout() {
    let stage = Stage::new(Script::new([Answer::text("late").held_at("never")]));
    let body = json!({ "prompt": "x", "options": { "timeout_ms": 1000 } });
    let (status, answer) = stage.ask(&body.to_string());
    assert_eq!((status, answer["error_code"].as_str()), (504, Some("EXECUTION_TIMEOUT")), "{answer:#}");
    stage.service.stop();
}

#[once]
#[test]
fn what_is_no_question_is_refused_before_anything_is_spent() {
    let stage = Stage::new(Script::new([Answer::text("never")]));
    for (body, meant) in [
        (json!({ "prompt": "" }), "prompt"),
        (json!({ "prompt": "x", "options": { "allowed_tools": ["WebFech"] } }), "WebFetch"),
        (json!({ "prompt": "x", "options": { "max_turn": 1 } }), "max_turns"),
    ] {
        let (status, answer) = stage.ask(&body.to_string());
        assert_eq!((status, answer["error_code"].as_str()), (400, Some("INVALID_REQUEST")), "{answer:#}");
        assert!(answer.to_string().contains(meant), "{answer:#}");
    }
    assert_eq!(stage.model.calls(), 0);
    stage.service.stop();
}

#[once]
#[test]
fn a_conversation_goes_on_where_it_was() {
    let stage = Stage::new(Script::new([Answer::text("Four."), Answer::text("Because.")]));
    let (_, first) = stage.ask(TWO_AND_TWO);
    let run = &first["metadata"]["run_id"];
    let body = json!({ "prompt": "Why?", "options": { "resume": run } });
    let (status, second) = stage.ask(&body.to_string());
    assert_eq!((status, &second["result"]), (200, &json!("Because.")), "{second:#}");
    let asked = stage.model.requests().last().expect("the model was asked").body.to_string();
    for said in ["What is 2 + 2?", "Four.", "Why?"] {
        assert!(asked.contains(said), "{said}: {asked}");
    }
    assert!(!asked.contains(KEY));
    stage.service.stop();
}

fn todo() -> ToolCall {
    let todo = json!({ "content": "look", "status": "pending", "activeForm": "looking" });
    call("TodoWrite", json!({ "todos": [todo] }))
}

#[once]
#[test]
fn a_budget_that_is_spent_ends_it_in_the_sdks_word() {
    // 15 dollars for a million tokens of output.
    let dear = Usage { input: 1000, output: 400_000, ..Usage::default() };
    let first = Answer { delay_ms: 30, ..Answer::tools([todo()]).saying("I look.").costing(dear) };
    let stage = Stage::new(Script::new([first, Answer::text("never")]));
    let options =
        json!({ "model": "claude-sonnet-4-5", "max_cost_usd": 5.0, "allowed_tools": ["TodoWrite"] });
    let (status, answer) = stage.ask(&json!({ "prompt": "x", "options": options }).to_string());
    assert_eq!((status, &answer["success"]), (200, &json!(false)), "{answer:#}");
    let messages = answer["messages"].as_array().expect("a list");
    let kinds: Vec<&str> = messages.iter().filter_map(|message| message["type"].as_str()).collect();
    assert_eq!(kinds, ["system", "assistant", "user", "result"], "{answer:#}");
    let result = &messages[3];
    assert_eq!(
        (&result["subtype"], &result["is_error"], &result["num_turns"], &result["errors"]),
        (
            &json!("error_max_budget_usd"),
            &json!(true),
            &json!(2),
            &json!(["the run's budget is spent: cost"])
        ),
        "{answer:#}"
    );
    assert!(result["total_cost_usd"].as_f64().is_some_and(|cost| cost > 5.0), "{answer:#}");
    let took = |name: &str| result[name].as_u64().unwrap_or_default();
    assert!((30..=took("duration_ms")).contains(&took("duration_api_ms")), "{answer:#}");
    assert_eq!(stage.model.calls(), 1, "the second was not forwarded");
    let run = answer["metadata"]["run_id"].as_str().expect("a run");
    let events = stage.fixture.events(run);
    let finished = events.iter().find(|event| event["type"] == "agent.finished").expect("it told its end");
    assert_eq!(finished["data"]["result"]["subtype"], "error_max_budget_usd", "{finished:#}");
    let shown = stage.fixture.cofferdam(["runs", "show", "--json", run]).json();
    let hint = shown["outcome"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains(&format!("--continue {run}")), "there is no diff to look at: {hint}");
    stage.service.stop();
}

#[once]
#[test]
fn what_people_say_to_a_run_is_a_message_of_the_user_in_its_place() {
    let answers = [Answer::tools([todo()]).held_at("first"), Answer::text("Four."), Answer::text("Because.")];
    let stage = Stage::new(Script::new(answers));
    let body = json!({ "prompt": "What is 2 + 2?", "options": { "allowed_tools": ["TodoWrite"] } });
    let (status, accepted) = read(stage.curl(&["-H", "Prefer: respond-async"], &body.to_string()));
    assert_eq!(status, 202, "{accepted:#}");
    let run = accepted["id"].as_str().expect("a run").to_owned();
    stage.model.wait_held("first");
    // Each waits for its receipt.
    let sending: Vec<_> = [("--steer", "be brief"), ("--follow-up", "and why?")]
        .into_iter()
        .map(|(kind, text)| {
            let mut command = stage.fixture.command();
            command.args(["runs", "send", &run, kind, text]).spawn().expect("it starts")
        })
        .collect();
    wait_until(Duration::from_secs(60), "the messages are accepted", || {
        let events = stage.fixture.events(&run);
        events.iter().filter(|event| event["type"] == "message.accepted").count() == 2
    });
    stage.model.release("first");
    for mut sending in sending {
        assert!(sending.wait().expect("it ends").success());
    }
    let answer = stage.answer_of(&run);
    let messages = answer["messages"].as_array().expect("a list");
    let said: Vec<(&str, &str)> = messages
        .iter()
        .map(|message| {
            let block = &message["message"]["content"][0];
            let words = block["text"].as_str().or(block["type"].as_str()).unwrap_or_default();
            (message["type"].as_str().unwrap_or_default(), words)
        })
        .collect();
    let expected = [
        ("system", ""),
        ("assistant", "tool_use"),
        ("user", "tool_result"),
        ("user", "be brief"),
        ("assistant", "Four."),
        ("user", "and why?"),
        ("assistant", "Because."),
        ("result", ""),
    ];
    assert_eq!(said, expected, "{answer:#}");
    assert_eq!(answer["result"], "Because.");
    let blocks = stage.model.requests().last().expect("the model was asked").body["messages"].to_string();
    assert!(blocks.contains("be brief") && blocks.contains("and why?"), "{blocks}");
    stage.service.stop();
}
