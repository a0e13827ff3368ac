//! What is recorded, and what does not take from the script.

use bytes::Bytes;
use cofferdam_scripted_model::{Answer, Kind, Script, ScriptedModel};
use http::Request;
use http_body_util::Full;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::json;

use crate::client::{asking, call, post, send};

#[tokio::test]
async fn a_request_is_recorded_whole() {
    let model = ScriptedModel::start(Script::new([]));
    let body = asking("/v1/messages", true);
    post(&model, "/model/anthropic/v1/messages?beta=true", &body).await.expect("an answer");
    let requests = model.requests();
    assert_eq!(requests[0].path, "/model/anthropic/v1/messages?beta=true");
    assert_eq!(requests[0].headers["content-type"], "application/json");
    assert_eq!(requests[0].key(), Some("sk-real"));
    assert_eq!(requests[0].body, body);
    assert_eq!(requests[0].kind, Kind::Call);
}

#[tokio::test]
async fn a_compressed_body_is_recorded_unpacked() {
    let model = ScriptedModel::start(Script::new([]));
    let body = asking("/v1/responses", false);
    let packed = compress_to_vec(body.to_string().as_bytes(), CompressionLevel::Fastest);
    let request = Request::post("/v1/responses").header("host", "model").header("content-encoding", "zstd");
    let request = request.body(Full::<Bytes>::from(packed)).expect("a request");
    assert_eq!(send(&model, request).await.expect("an answer").status, 200);
    assert_eq!((model.calls(), &model.requests()[0].body), (1, &body));
}

#[tokio::test]
async fn a_request_without_tools_takes_nothing_from_the_script() {
    let model = ScriptedModel::start(Script::new([Answer::text("the first")]));
    let aside = json!({"messages": [{"role": "user", "content": "a title"}], "stream": true});
    let reply = post(&model, "/v1/messages", &aside).await.expect("an answer");
    assert!(!reply.body.contains("the first"));
    assert!(call(&model).await.expect("an answer").body.contains("the first"));
    assert_eq!((model.calls(), model.asides()), (1, 1));
}

#[tokio::test]
async fn a_script_can_count_requests_without_tools() {
    let model = ScriptedModel::start(Script::new([Answer::text("scripted")]).counting_asides());
    let reply = post(&model, "/v1/responses", &json!({"input": "hello"})).await.expect("an answer");
    assert_eq!(reply.json()["output"][0]["content"][0]["text"], "scripted");
    assert_eq!((model.calls(), model.asides()), (1, 0));
}

#[tokio::test]
async fn only_the_expected_key_is_let_in() {
    let model = ScriptedModel::start(Script::new([Answer::text("yes")]).expecting_key("sk-real"));
    let keys = [
        (vec![], 401),
        (vec![("x-api-key", "placeholder")], 401),
        (vec![("x-api-key", "sk-real"), ("authorization", "Bearer placeholder")], 401),
        (vec![("x-api-key", "sk-real")], 200),
        (vec![("authorization", "Bearer sk-real")], 200),
    ];
    for (headers, status) in keys {
        let mut request = Request::post("/v1/messages").header("host", "model");
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        let body = Full::<Bytes>::from(asking("/v1/messages", false).to_string());
        let reply = send(&model, request.body(body).expect("a request")).await.expect("an answer");
        assert_eq!(reply.status, status, "{headers:?}");
    }
    let refused = model.requests().iter().filter(|one| one.kind == Kind::WrongKey).count();
    assert_eq!((model.calls(), refused), (2, 3));
}

#[tokio::test]
async fn tokens_are_counted_and_models_listed_beside_the_script() {
    let model = ScriptedModel::start(Script::new([]));
    let counted = post(&model, "/v1/messages/count_tokens", &json!({"messages": []})).await;
    assert_eq!(counted.expect("an answer").json(), json!({"input_tokens": 100}));
    let request = Request::get("/x/v1/models").header("host", "model").body(Full::<Bytes>::default());
    let listed = send(&model, request.expect("a request")).await.expect("an answer");
    assert_eq!(listed.json()["data"][0]["id"], "scripted");
    let request = Request::head("/x").header("host", "model").body(Full::<Bytes>::default());
    assert_eq!(send(&model, request.expect("a request")).await.expect("an answer").status, 200);
    assert_eq!(model.calls(), 0);
    let kinds: Vec<Kind> = model.requests().iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [Kind::CountTokens, Kind::Models, Kind::Probe]);
}

#[tokio::test]
async fn a_gate_is_released_by_a_control_call() {
    let model = ScriptedModel::start(Script::new([Answer::text("late").held_at("go")]));
    let released = post(&model, "/_control/release/go", &json!({})).await.expect("an answer");
    assert_eq!(released.status, 200);
    assert!(call(&model).await.expect("an answer").body.contains("late"));
    let counts = post(&model, "/_control/calls", &json!({})).await.expect("an answer").json();
    assert_eq!(counts, json!({"calls": 1, "asides": 0, "max_in_flight": 1}));
    assert_eq!(model.requests().len(), 1, "control calls are not recorded");
}
