//! Tools that the vendor runs: those that were named pass, are counted and paid for, and open nothing else.

use cofferdam_core::{EventType, VendorTool};
use http::StatusCode;
use serde_json::{Value, json};

use super::rig::{CHAT, Fake, MESSAGES, RESPONSES, Reply, Rig, Setup, answered, message};
use crate::body::full;

async fn allowing(fake: &Fake, tools: &[VendorTool]) -> Rig {
    let mut setup = Setup::at(fake);
    setup.grant.vendor_tools = tools.to_vec();
    setup.open().await
}

fn with(mut body: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn responses() -> Value {
    json!({"model": "gpt-5", "input": "hi", "max_output_tokens": 100})
}

fn chat() -> Value {
    json!({"model": "gpt-5", "messages": [], "max_completion_tokens": 100})
}

fn search() -> Value {
    json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}])
}

#[tokio::test]
async fn a_tool_that_was_named_passes_and_no_other_does() {
    let fake = Fake::start(|_| answered()).await;
    let rig = allowing(&fake, &[VendorTool::WebSearch]).await;
    let tools = with(message(), &json!({"tools": search()}));
    assert_eq!(rig.post(MESSAGES, &tools).await.0, StatusCode::OK);
    assert_eq!(fake.seen()[0].body["tools"], search());
    let image = json!([{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://x"}}]}]);
    let refused = [
        (MESSAGES, with(message(), &json!({"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}))),
        (MESSAGES, with(message(), &json!({"tools": [{"type": "code_execution_20250825", "name": "c"}]}))),
        (MESSAGES, with(message(), &json!({"mcp_servers": [{"type": "url", "url": "https://x"}]}))),
        (MESSAGES, with(message(), &json!({"container": "c"}))),
        (MESSAGES, with(message(), &json!({"messages": image}))),
        (RESPONSES, with(responses(), &json!({"tools": [{"type": "mcp", "server_url": "https://x"}]}))),
        (RESPONSES, with(responses(), &json!({"tools": [{"type": "file_search"}]}))),
        (RESPONSES, with(responses(), &json!({"previous_response_id": "r"}))),
    ];
    for (path, body) in &refused {
        let (status, answer) = rig.post(path, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(answer.contains("is refused"), "{answer}");
    }
    assert_eq!(fake.seen().len(), 1);
    let (_, answer) = rig.post(MESSAGES, &refused[0].1).await;
    assert!(answer.contains("allow it with --vendor-tools web_fetch"), "{answer}");
}

/// The attack: with the vendor's tools allowed, an agent chooses a dearer tier, a dearer speed, or many answers.
#[tokio::test]
async fn what_changes_the_charge_is_taken_out_or_refused_though_tools_are_allowed() {
    let fake = Fake::start(|_| answered()).await;
    let rig = allowing(&fake, &VendorTool::ALL).await;
    let dear = json!({"service_tier": "priority", "speed": "fast", "inference_geo": "us", "n": 8, "store": true,
        "prediction": {"type": "content", "content": "x"}, "modalities": ["audio"]});
    for (path, body) in [(MESSAGES, message()), (RESPONSES, responses()), (CHAT, chat())] {
        assert_eq!(rig.post(path, &with(body, &dear)).await.0, StatusCode::OK, "{path}");
        let sent = fake.seen().last().unwrap().body.clone();
        for (name, value) in dear.as_object().unwrap() {
            assert_ne!(&sent[name], value, "{name} at {path}");
        }
    }
    let compaction = json!({"context_management": {"edits": [{"type": "compact_20260112"}]}});
    let audio = json!({"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA"}}]}]});
    for (path, body) in [(MESSAGES, with(message(), &compaction)), (CHAT, with(chat(), &audio))] {
        let (status, answer) = rig.post(path, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(answer.contains("no budget could count what it costs"), "{answer}");
    }
    let cleared = json!({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}});
    assert_eq!(rig.post(MESSAGES, &with(message(), &cleared)).await.0, StatusCode::OK);
}

#[tokio::test]
async fn searches_are_reserved_and_charged() {
    let used = json!({"input_tokens": 100, "output_tokens": 20,
        "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 1}});
    let fake = Fake::start(move |_| Reply::json(200, &json!({"type": "message", "usage": used}))).await;
    let mut setup = Setup::at(&fake);
    setup.grant.vendor_tools = vec![VendorTool::WebSearch];
    setup.grant.budget.max_cost_micro_usd = Some(10_000_000);
    let rig = setup.open().await;
    assert_eq!(rig.post(MESSAGES, &message()).await.0, StatusCode::OK);
    assert_eq!(rig.post(MESSAGES, &with(message(), &json!({"tools": search()}))).await.0, StatusCode::OK);
    rig.routes.settle().await;
    let reserved: Vec<u64> =
        rig.ledger.begun.lock().unwrap().iter().map(|call| call.reserved.cost_micro_usd).collect();
    assert!(reserved[1] >= reserved[0] + 3 * 10_000, "three searches, a cent each: {reserved:?}");
    let ended = rig.ledger.ended.lock().unwrap()[1].clone();
    assert_eq!(ended.spent.cost_micro_usd, 100 * 3 + 20 * 15 + 2 * 10_000);
    let event = &rig.ledger.of(EventType::ModelUsage)[1];
    assert_eq!((&event["web_searches"], &event["web_fetches"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn under_a_budget_a_tool_has_to_say_how_often_it_may_be_used() {
    let fake = Fake::start(|_| answered()).await;
    let endless = json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]});
    let rig = allowing(&fake, &VendorTool::ALL).await;
    assert_eq!(rig.post(MESSAGES, &with(message(), &endless)).await.0, StatusCode::OK);
    let mut setup = Setup::at(&fake);
    setup.grant.vendor_tools = VendorTool::ALL.into();
    setup.grant.budget.max_cost_micro_usd = Some(10_000_000);
    let rig = setup.open().await;
    let (status, answer) = rig.post(MESSAGES, &with(message(), &endless)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(answer.contains("`max_uses`"), "{answer}");
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn at_openai_searches_are_limited_counted_and_charged() {
    let usage =
        json!({"input_tokens": 10, "output_tokens": 10, "prompt_tokens": 10, "completion_tokens": 10});
    let items = json!([{"type": "web_search_call"}, {"type": "message"}]);
    let fake = Fake::start(move |_| Reply::json(200, &json!({"usage": usage, "output": items}))).await;
    let rig = allowing(&fake, &[VendorTool::WebSearch]).await;
    let tool = json!({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}});
    assert_eq!(rig.post(RESPONSES, &with(responses(), &tool)).await.0, StatusCode::OK);
    let limited = with(responses(), &with(tool, &json!({"max_tool_calls": 2})));
    assert_eq!(rig.post(RESPONSES, &limited).await.0, StatusCode::OK);
    let in_chat = with(chat(), &json!({"web_search_options": {}}));
    assert_eq!(rig.post(CHAT, &in_chat).await.0, StatusCode::OK);
    rig.routes.settle().await;
    let limits: Vec<Value> = fake.seen().iter().map(|seen| seen.body["max_tool_calls"].clone()).collect();
    assert_eq!(limits, [json!(10), json!(2), json!(null)]);
    let tokens = 13 + 100; // $1.25 and $10 for a million, rounded up.
    let costs: Vec<u64> =
        rig.ledger.ended.lock().unwrap().iter().map(|call| call.spent.cost_micro_usd).collect();
    assert_eq!(costs, [tokens + 10_000, tokens + 10_000, tokens + 25_000]);
}

#[tokio::test]
async fn a_beta_passes_with_its_tool_alone() {
    let fake = Fake::start(|_| answered()).await;
    let rig = allowing(&fake, &[VendorTool::WebFetch]).await;
    let betas = "web-fetch-2025-09-10,web-search-2025-03-05,files-api-2025-04-14,code-execution-2025-08-25";
    let request = rig.request("POST", MESSAGES).header("anthropic-beta", betas);
    rig.send(request.body(full(message().to_string())).unwrap()).await;
    assert_eq!(fake.seen()[0].headers["anthropic-beta"], "web-fetch-2025-09-10");
}
