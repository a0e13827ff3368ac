//! Answers and errors of `POST /execute/sdk`.

use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;
use serde_json::json;

use super::stage::{KEY, Stage};

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
