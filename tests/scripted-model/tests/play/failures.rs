//! Errors, cuts and garbage arrive as the script says.

use cofferdam_scripted_model::{Answer, Cut, Ending, Garbage, Script, ScriptedModel};

use crate::client::{asking, call, post};

#[tokio::test]
async fn an_error_carries_its_headers_and_a_body_of_the_api() {
    let error = || Answer::error(429).with_header("retry-after", "7");
    let model = ScriptedModel::start(Script::new([error(), error()]));
    let reply = call(&model).await.expect("an answer");
    assert_eq!(reply.status, 429);
    assert_eq!(reply.headers["retry-after"], "7");
    assert_eq!(reply.json()["error"]["type"], "rate_limit_error");
    let reply = post(&model, "/v1/responses", &asking("/v1/responses", true)).await.expect("an answer");
    assert!(reply.json()["error"]["message"].is_string());
    assert_eq!(call(&model).await.expect("an answer").status, 200, "the script has ended");
}

#[tokio::test]
async fn a_cut_before_the_headers_answers_nothing() {
    let model = ScriptedModel::start(Script::new([Answer::cut(Cut::BeforeHeaders)]));
    assert!(call(&model).await.is_none());
    assert_eq!(model.requests()[0].ending, Some(Ending::Cut));
}

#[tokio::test]
async fn a_cut_after_events_sends_exactly_those() {
    for after in [0, 1, 3] {
        let model = ScriptedModel::start(Script::new([Answer::cut(Cut::AfterEvents(after))]));
        let reply = call(&model).await.expect("headers");
        assert!(reply.cut);
        assert_eq!(reply.body.matches("\n\n").count(), after);
        assert!(reply.body.is_empty() || reply.body.ends_with("\n\n"));
        assert_eq!(model.requests()[0].ending, Some(Ending::Cut));
    }
}

#[tokio::test]
async fn a_cut_in_an_event_leaves_half_of_it() {
    let model = ScriptedModel::start(Script::new([Answer::cut(Cut::MidEvent(2))]));
    let reply = call(&model).await.expect("headers");
    assert!(reply.cut);
    assert_eq!(reply.body.matches("\n\n").count(), 2);
    assert!(!reply.body.ends_with("\n\n"));
}

#[tokio::test]
async fn garbage_is_not_what_the_api_allows() {
    let all = [Garbage::NotJson, Garbage::WrongContentType, Garbage::Empty];
    let model = ScriptedModel::start(Script::new(all.map(Answer::garbage)));
    let reply = call(&model).await.expect("an answer");
    let data = reply.body.lines().find_map(|line| line.strip_prefix("data: ")).expect("an event");
    assert!(serde_json::from_str::<serde_json::Value>(data).is_err());
    assert_eq!(call(&model).await.expect("an answer").headers["content-type"], "text/html");
    assert_eq!(call(&model).await.expect("an answer").body, "");
}

#[tokio::test]
async fn a_call_that_no_offered_tool_can_do_is_an_error_that_no_cli_repeats() {
    let model = ScriptedModel::start(Script::new([Answer::shell("ls")]));
    let mut body = asking("/v1/messages", true);
    body["tools"] = serde_json::json!([{"name": "WebSearch"}]);
    let reply = post(&model, "/v1/messages", &body).await.expect("an answer");
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("WebSearch"), "{}", reply.body);
}
