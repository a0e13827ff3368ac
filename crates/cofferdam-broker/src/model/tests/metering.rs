use bytes::Bytes;
use cofferdam_core::{EventType, Spent};
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::json;

use super::rig::{CHAT, Fake, MESSAGES, RESPONSES, Reply, Setup, answered, message, sse};
use crate::body::full;

#[tokio::test]
async fn a_stream_passes_unchanged_and_is_charged_what_it_says() {
    let fake = Fake::start(|_| {
        let mut reply = answered().header("set-cookie", "a=b").header("request-id", "r1");
        let whole = reply.chunks[0].clone();
        reply.chunks = whole.chunks(7).map(Bytes::copy_from_slice).collect();
        reply
    })
    .await;
    let rig = Setup::at(&fake).open().await;
    let request = rig.request("POST", MESSAGES).body(full(message().to_string())).unwrap();
    let response = rig.send(request).await;
    assert_eq!(response.headers()["request-id"], "r1");
    assert!(!response.headers().contains_key("set-cookie"));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, answered().chunks[0]);
    // Written down before the agent saw the end.
    let ended = rig.ledger.ended.lock().unwrap().clone();
    assert_eq!(ended[0].spent, Spent { cost_micro_usd: 600, tokens: 120, calls: 1 });
    assert_eq!(ended[0].trouble, None);
    let usage = &rig.ledger.of(EventType::ModelUsage)[0];
    for (field, value) in [
        ("vendor", json!("anthropic")),
        ("model", json!("claude-sonnet-4-5")),
        ("input_tokens", json!(100)),
        ("output_tokens", json!(20)),
        ("cache_read_tokens", json!(0)),
        ("cache_write_tokens", json!(0)),
        ("cost_usd", json!(0.0006)),
        ("status", json!(200)),
        ("call", json!(1)),
        ("estimated", json!(false)),
    ] {
        assert_eq!(usage[field], value, "{field}");
    }
}

#[tokio::test]
async fn answers_of_openai_are_metered_too_and_chat_streams_are_asked_for_their_usage() {
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}});
    let fake = Fake::start(move |seen| match seen.path.as_str() {
        "/v1/responses" => Reply::json(200, &json!({"status": "completed", "usage": usage})),
        _ => Reply::stream(
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
        ),
    })
    .await;
    let rig = Setup::at(&fake).open().await;
    let (status, _) = rig.post(RESPONSES, &json!({"model": "m1", "input": "hi"})).await;
    assert_eq!(status, StatusCode::OK);
    let chat =
        json!({"model": "m1", "messages": [], "stream": true, "stream_options": {"include_usage": false}});
    rig.post(CHAT, &chat).await;
    rig.routes.settle().await;
    assert_eq!(fake.seen()[1].body["stream_options"], json!({"include_usage": true}));
    let events = rig.ledger.of(EventType::ModelUsage);
    assert_eq!((&events[0]["input_tokens"], &events[0]["cache_read_tokens"]), (&json!(6), &json!(4)));
    assert_eq!(events[0]["cost_usd"], json!(null));
    assert_eq!(events[1]["tokens"], json!(9));
}

#[tokio::test]
async fn counting_tokens_and_listing_models_cost_nothing() {
    let fake = Fake::start(|_| Reply::json(200, &json!({"input_tokens": 9}))).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_model_calls = Some(0);
    let rig = setup.open().await;
    let (status, _) = rig.post("/model/anthropic/v1/messages/count_tokens", &message()).await;
    assert_eq!(status, StatusCode::OK);
    let models = rig.request("GET", "/model/openai/v1/models").body(full("")).unwrap();
    assert_eq!(rig.send(models).await.status(), StatusCode::OK);
    assert_eq!(fake.seen().len(), 2);
    assert!(rig.ledger.begun.lock().unwrap().is_empty());
}

/// The attack: a model that thinks says next to nothing for long, and the agent hangs up before it tells what that was.
#[tokio::test]
async fn an_answer_that_the_agent_cuts_is_charged_as_reserved_and_not_by_its_size() {
    let start = sse(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 50, "output_tokens": 1}}}),
    ]);
    let delta = sse(&[json!({"type": "content_block_delta", "delta": {"text": "x".repeat(600)}})]);
    let fake = Fake::start(move |_| Reply { stall: true, ..Reply::stream(&format!("{start}{delta}")) }).await;
    let rig = Setup::at(&fake).open().await;
    let request = rig.request("POST", MESSAGES).body(full(message().to_string())).unwrap();
    let mut response = rig.send(request).await;
    let mut got = 0;
    while got < 700 {
        got += response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap().len() as u64;
    }
    drop(response);
    rig.routes.settle().await;
    let ended = rig.ledger.ended.lock().unwrap()[0].clone();
    assert_eq!(ended.trouble, None);
    // Its input is what the vendor told, its output all that it could have had.
    assert_eq!(ended.spent, Spent { cost_micro_usd: 50 * 3 + 2000 * 15, tokens: 50 + 2000, calls: 1 });
    let usage = &rig.ledger.of(EventType::ModelUsage)[0];
    assert_eq!((&usage["output_tokens"], &usage["estimated"]), (&json!(2000), &json!(true)));
}

#[tokio::test]
async fn an_agent_that_hangs_up_before_the_answer_is_charged_the_reservation() {
    let fake = Fake::gated(|_| answered()).await;
    let rig = Setup::at(&fake).open().await;
    let request = rig.request("POST", MESSAGES).body(full(message().to_string())).unwrap();
    tokio::select! {
        _ = rig.send(request) => panic!("the server is not let to answer"),
        () = async { while fake.seen().is_empty() { tokio::task::yield_now().await } } => {}
    }
    rig.routes.settle().await;
    let reserved = rig.ledger.begun.lock().unwrap()[0].reserved;
    assert_eq!(rig.ledger.ended.lock().unwrap()[0].spent, reserved);
    assert!(reserved.tokens > 2000);
    assert_eq!(rig.ledger.of(EventType::ModelUsage)[0]["estimated"], json!(true));
}
