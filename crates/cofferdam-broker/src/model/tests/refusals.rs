use cofferdam_core::{Credential, EventType};
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::rig::{CHAT, Fake, KEY, MESSAGES, PLACEHOLDER, RESPONSES, Reply, Rig, Setup, answered, message};
use crate::body::full;

async fn open() -> (Fake, Rig) {
    let fake = Fake::start(|_| answered()).await;
    let rig = Setup::at(&fake).open().await;
    (fake, rig)
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

fn responses() -> Value {
    json!({"model": "gpt-5", "input": [{"role": "user", "content": "hi"}], "stream": true})
}

fn chat() -> Value {
    json!({"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]})
}

#[tokio::test]
async fn only_the_exact_methods_and_paths_reach_the_vendor() {
    let (fake, rig) = open().await;
    let refused = [
        ("POST", "/model/anthropic/v1/messages/"),
        ("POST", "/model/anthropic/v1/messages/../messages"),
        ("POST", "/model/anthropic/v1/./messages"),
        ("POST", "/model/anthropic/v1/%2e%2e/v1/messages"),
        ("POST", "/model/anthropic/v1%2fmessages"),
        ("POST", "/model/anthropic//v1/messages"),
        ("POST", "/model/anthropic/v1/messages;x"),
        ("POST", "/model/anthropic/v1/messages?beta=true&x=1"),
        ("POST", "/model/anthropic/v1/messages?beta=false"),
        ("POST", "/model/anthropic/v1/messages/batches"),
        ("POST", "/model/anthropic/v1/files"),
        ("GET", "/model/anthropic/v1/organizations/api_keys"),
        ("POST", "/model/anthropic/v1/responses"),
        ("POST", "/model/anthropicx/v1/messages"),
        ("POST", "/model/openai/v1/messages"),
        ("POST", "/model/openai/v1/files"),
        ("POST", "/model/openai/v1/batches"),
        ("GET", "/model/openai/v1/responses/resp_1"),
        ("GET", "/model/openai/v1/responses"),
        ("DELETE", "/model/openai/v1/models"),
        ("GET", "/model/openai/v1/models?limit=1"),
        ("GET", "/model/openai/v1/models/gpt-5"),
        ("PUT", "/model/anthropic/v1/messages"),
        ("POST", "/model/other/v1/messages"),
    ];
    for (method, path) in refused {
        let request = rig.request(method, path).body(full(message().to_string())).unwrap();
        let response = rig.send(request).await;
        assert!(matches!(response.status().as_u16(), 403 | 404), "{method} {path}: {}", response.status());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["error"]["message"].as_str().unwrap().starts_with("cofferdam: "), "{path}");
    }
    assert_eq!(fake.seen().len(), 0);
    let told = rig.ledger.of(EventType::ModelRefused);
    assert_eq!(told.len(), refused.len());
    assert_eq!(told[0]["path"], "/model/anthropic/v1/messages/");
}

#[tokio::test]
async fn an_upgrade_is_refused_and_the_preflight_is_answered_here() {
    let (fake, rig) = open().await;
    let upgrade = rig.request("POST", RESPONSES).header("upgrade", "websocket").body(full("")).unwrap();
    assert_eq!(rig.send(upgrade).await.status(), StatusCode::FORBIDDEN);
    let preflight = rig.request("HEAD", "/model/anthropic").body(full("")).unwrap();
    assert_eq!(rig.send(preflight).await.status(), StatusCode::OK);
    assert_eq!(fake.seen().len(), 0);
}

#[tokio::test]
async fn what_the_vendor_would_fetch_or_keep_is_refused() {
    let (fake, rig) = open().await;
    let block = |block: Value| with(message(), "messages", json!([{"role": "user", "content": [block]}]));
    let nested = json!({"type": "tool_result", "tool_use_id": "t", "content": [
        {"type": "image", "source": {"type": "url", "url": "http://10.0.0.1/"}}]});
    let input = |item: Value| with(responses(), "input", json!([{"role": "user", "content": [item]}]));
    let said = |part: Value| with(chat(), "messages", json!([{"role": "user", "content": [part]}]));
    let cases = [
        (MESSAGES, with(message(), "mcp_servers", json!([{"type": "url", "url": "https://x"}]))),
        (MESSAGES, with(message(), "container", json!("c1"))),
        (MESSAGES, with(message(), "tools", json!([{"type": "web_search_20250305", "name": "web_search"}]))),
        (MESSAGES, with(message(), "tools", json!([{"type": "web_fetch_20250910", "name": "f"}]))),
        (MESSAGES, with(message(), "tools", json!([{"type": "code_execution_20250825", "name": "c"}]))),
        (MESSAGES, with(message(), "tools", json!([{"type": "mcp_toolset"}]))),
        (MESSAGES, with(message(), "tools", json!([{"type": 7}]))),
        (MESSAGES, block(json!({"type": "image", "source": {"type": "url", "url": "https://x"}}))),
        (MESSAGES, block(json!({"type": "document", "source": {"type": "file", "file_id": "f"}}))),
        (MESSAGES, block(json!({"type": "container_upload", "file_id": "f"}))),
        (MESSAGES, block(nested)),
        (RESPONSES, with(responses(), "background", json!(true))),
        (RESPONSES, with(responses(), "previous_response_id", json!("r"))),
        (RESPONSES, with(responses(), "conversation", json!("c"))),
        (RESPONSES, with(responses(), "prompt", json!({"id": "p"}))),
        (RESPONSES, with(responses(), "tools", json!([{"type": "mcp", "server_url": "https://x"}]))),
        (RESPONSES, with(responses(), "tools", json!([{"type": "file_search"}]))),
        (RESPONSES, with(responses(), "tools", json!([{"type": "code_interpreter"}]))),
        (RESPONSES, with(responses(), "tools", json!([{"type": "computer_use_preview"}]))),
        (
            RESPONSES,
            with(responses(), "tools", json!([{"type": "shell", "environment": {"type": "container_auto"}}])),
        ),
        (RESPONSES, with(responses(), "tools", json!([{"type": "namespace", "tools": [{"type": "mcp"}]}]))),
        (RESPONSES, with(responses(), "tool_choice", json!({"type": "web_search"}))),
        (RESPONSES, with(responses(), "model", json!("o3-deep-research"))),
        (RESPONSES, with(responses(), "input", json!([{"type": "item_reference", "id": "i"}]))),
        (RESPONSES, input(json!({"type": "input_image", "image_url": "https://x/y.png"}))),
        (RESPONSES, input(json!({"type": "input_image", "file_id": "f"}))),
        (RESPONSES, input(json!({"type": "input_file", "file_url": "https://x"}))),
        (CHAT, with(chat(), "web_search_options", json!({}))),
        (CHAT, with(chat(), "tools", json!([{"type": "web_search"}]))),
        (CHAT, with(chat(), "model", json!("gpt-4o-search-preview"))),
        (CHAT, said(json!({"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}}))),
        (CHAT, said(json!({"type": "file", "file": {"file_id": "f"}}))),
    ];
    for (path, body) in &cases {
        let (status, answer) = rig.post(path, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(answer.contains("refused"), "{answer}");
    }
    assert_eq!(fake.seen().len(), 0);
    assert_eq!(rig.ledger.of(EventType::ModelRefused).len(), cases.len());
    assert_eq!(rig.ledger.begun.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn what_an_agent_says_and_calls_is_never_mistaken_for_a_source() {
    let (fake, rig) = open().await;
    let call = json!({"type": "tool_use", "id": "t", "name": "w", "input": {
        "source": {"type": "url"}, "file_id": "x", "type": "container_upload"}});
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": [image]});
    let messages = json!([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]);
    let tools = json!([{"name": "w", "input_schema": {"properties": {"mcp_servers": {"type": "url"}}}},
        {"type": "bash_20250124", "name": "bash"}, {"type": "custom", "name": "c", "input_schema": {}}]);
    let body = with(with(message(), "messages", messages.clone()), "tools", tools.clone());
    assert_eq!(rig.post(MESSAGES, &body).await.0, StatusCode::OK);
    let seen = fake.seen();
    assert_eq!((&seen[0].body["messages"], &seen[0].body["tools"]), (&messages, &tools));
}

#[tokio::test]
async fn what_codex_offers_of_the_vendors_own_tools_is_taken_out_and_said_once() {
    let (fake, rig) = open().await;
    let tools = json!([{"type": "function", "name": "exec_command"},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]},
        {"type": "web_search", "external_web_access": true}, {"type": "custom", "name": "apply_patch"}]);
    let body = with(with(responses(), "tools", tools), "store", json!(true));
    let body = with(body, "service_tier", json!("priority"));
    for _ in 0..3 {
        rig.post(RESPONSES, &body).await;
    }
    let sent = &fake.seen()[2].body;
    let kinds: Vec<_> = sent["tools"].as_array().unwrap().iter().map(|tool| tool["type"].clone()).collect();
    assert_eq!(kinds, ["function", "namespace", "custom"]);
    assert_eq!(sent["store"], json!(false));
    assert_eq!(sent.get("service_tier"), None);
    let told = rig.ledger.of(EventType::ModelRefused);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0]["message"].as_str().unwrap().ends_with("the field `service_tier`, the tool `web_search`")
    );
}

#[tokio::test]
async fn tools_that_are_offered_in_the_conversation_are_looked_at_too() {
    let (fake, rig) = open().await;
    let late = |tool: Value| {
        let own = json!({"type": "function", "name": "f"});
        let tools = json!([{"type": "namespace", "name": "functions", "tools": [own, tool]}]);
        let offer = json!({"type": "additional_tools", "role": "developer", "tools": tools});
        with(responses(), "input", json!([offer, {"role": "user", "content": "hi"}]))
    };
    assert_eq!(rig.post(RESPONSES, &late(json!({"type": "web_search"}))).await.0, StatusCode::OK);
    let sent = &fake.seen()[0].body["input"][0]["tools"][0]["tools"];
    assert_eq!(*sent, json!([{"type": "function", "name": "f"}]));
    for vendors in ["mcp", "code_interpreter", "file_search"] {
        let (status, _) = rig.post(RESPONSES, &late(json!({"type": vendors}))).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{vendors}");
    }
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_request_is_rebuilt_with_our_key_and_without_the_agents_headers() {
    let (fake, rig) = open().await;
    let request = rig
        .request("POST", "/model/anthropic/v1/messages?beta=true")
        .header("authorization", "Bearer stolen")
        .header("cookie", "a=b")
        .header("anthropic-organization-id", "o")
        .header("x-stainless-os", "Linux")
        .header("x-forwarded-for", "1.2.3.4")
        .header("user-agent", "claude-cli/2")
        .header("anthropic-version", "2023-06-01")
        .header("anthropic-beta", "effort-2025-11-24, files-api-2025-04-14,mcp-client-2025-11-20")
        .body(full(message().to_string()))
        .unwrap();
    assert_eq!(rig.send(request).await.status(), StatusCode::OK);
    let seen = &fake.seen()[0];
    assert_eq!(seen.path, "/v1/messages?beta=true");
    let mut names: Vec<_> = seen.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    let expected = [
        "accept-encoding",
        "anthropic-beta",
        "anthropic-version",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-api-key",
    ];
    assert_eq!(names, expected);
    assert_eq!(seen.headers["x-api-key"], KEY);
    assert_eq!(seen.headers["anthropic-beta"], "effort-2025-11-24");
    assert_eq!(seen.headers["accept-encoding"], "identity");
}

#[tokio::test]
async fn each_vendor_gets_its_kind_of_credential() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.credential = Credential::Bearer("login-token".to_owned());
    let rig = setup.open().await;
    rig.message().await;
    let (_, openai) = (rig.post(RESPONSES, &responses()).await, fake.seen());
    assert_eq!(openai[0].headers["authorization"], "Bearer login-token");
    assert_eq!(openai[0].headers["anthropic-beta"], "oauth-2025-04-20");
    assert!(!openai[0].headers.contains_key("x-api-key"));
    assert_eq!(openai[1].headers["authorization"], "Bearer login-token");
    assert!(!openai[1].headers.contains_key("anthropic-beta"));
}

#[tokio::test]
async fn where_the_placeholder_is_required_nothing_else_opens_the_door() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.grant.placeholder_required = true;
    let rig = setup.open().await;
    let bearer = format!("bearer {PLACEHOLDER}");
    let cases = [
        ("x-api-key", PLACEHOLDER, 200),
        ("authorization", bearer.as_str(), 200),
        ("x-api-key", "placeholder-2", 401),
        ("x-api-key", "", 401),
        ("authorization", PLACEHOLDER, 401),
        ("x-other", PLACEHOLDER, 401),
    ];
    for (name, value, status) in cases {
        let address = format!("http://{}{MESSAGES}", rig.address);
        let request = http::Request::post(address).header(name, value).body(full(message().to_string()));
        assert_eq!(rig.send(request.unwrap()).await.status(), status, "{name}: {value}");
    }
    assert_eq!(fake.seen().len(), 2);
}

#[tokio::test]
async fn bodies_that_are_no_single_reading_are_refused() {
    let (fake, rig) = open().await;
    let twice = r#"{"model":"m","tools":[],"tools":[{"type":"web_search_1"}],"max_tokens":5}"#;
    for (body, status) in [(twice, 400), ("{", 400), ("[]", 400), ("{}", 400), ("\u{feff}{}", 400)] {
        let request = rig.request("POST", MESSAGES).body(full(body)).unwrap();
        assert_eq!(rig.send(request).await.status(), status, "{body}");
    }
    let request = rig.request("POST", MESSAGES).header("content-encoding", "br").body(full("x")).unwrap();
    assert_eq!(rig.send(request).await.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(fake.seen().len(), 0);
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused_whether_or_not_it_says_its_length() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.bounds.body_bytes = 1000;
    let rig = setup.open().await;
    let big = with(message(), "system", json!("x".repeat(2000)));
    assert_eq!(rig.post(MESSAGES, &big).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let zstd = ruzstd::encoding::compress_to_vec(
        big.to_string().as_bytes(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    assert!(zstd.len() < 1000);
    let request = rig.request("POST", MESSAGES).header("content-encoding", "zstd").body(full(zstd)).unwrap();
    assert_eq!(rig.send(request).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(fake.seen().len(), 0);
}

#[tokio::test]
async fn a_flood_of_refusals_is_not_a_flood_of_events() {
    let (_fake, rig) = open().await;
    for _ in 0..300 {
        rig.post("/model/anthropic/v1/files", &json!({})).await;
    }
    assert_eq!(rig.ledger.of(EventType::ModelRefused).len(), 66);
}

#[tokio::test]
async fn without_a_key_the_agent_is_told_which_to_export() {
    let fake = Fake::start(|_| Reply::json(200, &json!({}))).await;
    let mut setup = Setup::at(&fake);
    setup.base_url = None;
    let rig = setup.open().await;
    let (status, body) = rig.message().await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("there is no key for Anthropic: export ANTHROPIC_API_KEY"), "{body}");
}
