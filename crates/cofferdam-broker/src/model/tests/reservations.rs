//! What is reserved for a request is no less than what its vendor can charge for it.

use http::StatusCode;
use serde_json::{Value, json};

use crate::body::full;

use super::rig::{CHAT, Fake, MESSAGES, RESPONSES, Reply, Rig, Setup, answered, message};

/// The input that is reserved for a request.
async fn reserved(rig: &Rig, path: &str, body: &Value) -> u64 {
    let (status, answer) = rig.post(path, body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let begun = rig.ledger.begun.lock().unwrap();
    begun.last().unwrap().reserved.tokens - MOST_OUTPUT
}

const MOST_OUTPUT: u64 = 16;

fn said_to_claude(block: Value) -> Value {
    json!({"model": "claude-sonnet-4-5", "max_tokens": MOST_OUTPUT, "messages": [{"role": "user", "content": [block]}]})
}

fn said_to_gpt(item: Value) -> Value {
    json!({"model": "gpt-5", "max_output_tokens": MOST_OUTPUT, "input": [{"role": "user", "content": [item]}]})
}

fn said_in_chat(part: Value) -> Value {
    json!({"model": "gpt-4o-mini", "max_completion_tokens": MOST_OUTPUT, "messages": [{"role": "user", "content": [part]}]})
}

fn base64(kind: &str, media: &str) -> Value {
    json!({"type": kind, "source": {"type": "base64", "media_type": media, "data": "AAAA"}})
}

/// A vendor that answers all three interfaces.
async fn answering() -> Fake {
    Fake::start(|seen| match seen.path.as_str() {
        "/v1/messages" => answered(),
        _ => Reply::json(200, &json!({"usage": {"input_tokens": 1, "output_tokens": 1}})),
    })
    .await
}

#[tokio::test]
async fn what_is_reserved_is_no_less_than_the_vendors_can_charge() {
    let fake = answering().await;
    let rig = Setup::at(&fake).open().await;
    let data_url = "data:image/png;base64,AAAA";
    let cuneiform = "\u{1242B}".repeat(1000);
    let noise = "~{^|".repeat(500);
    let nested = json!({"type": "tool_result", "tool_use_id": "t", "content": [base64("document", "application/pdf")]});
    let mut with_editor = said_to_claude(json!({"type": "text", "text": "hi"}));
    with_editor["tools"] = json!([{"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}]);
    let cases = [
        // A letter of a rare script is as many tokens as it has bytes.
        ("rare letters", MESSAGES, said_to_claude(json!({"type": "text", "text": cuneiform})), 4000),
        ("rare letters", RESPONSES, said_to_gpt(json!({"type": "input_text", "text": cuneiform})), 4000),
        ("noise", CHAT, said_in_chat(json!({"type": "text", "text": noise})), 2000),
        // A few bytes can be an image of any size.
        ("image", MESSAGES, said_to_claude(base64("image", "image/png")), 4784),
        ("image", RESPONSES, said_to_gpt(json!({"type": "input_image", "image_url": data_url})), 42_412),
        (
            "image",
            CHAT,
            said_in_chat(json!({"type": "image_url", "image_url": {"url": data_url}})),
            2833 + 8 * 5667,
        ),
        // And a document of any length.
        ("document", MESSAGES, said_to_claude(base64("document", "application/pdf")), 1_000_000),
        ("document in a result", MESSAGES, said_to_claude(nested), 1_000_000),
        ("document", RESPONSES, said_to_gpt(json!({"type": "input_file", "file_data": "AAAA"})), 1_000_000),
        ("document", CHAT, said_in_chat(json!({"type": "file", "file": {"file_data": "AAAA"}})), 1_000_000),
        // What the vendor tells the model of its own tool, and of how to call any.
        ("tool", MESSAGES, with_editor, 346 + 700),
    ];
    for (what, path, body, most) in cases {
        let reserved = reserved(&rig, path, &body).await;
        assert!(reserved >= most, "{what} at {path}: {reserved} is less than {most}");
    }
}

/// The attack: a book that the model reads as text, where something else looks like an image.
#[tokio::test]
async fn text_that_is_dressed_as_an_image_is_reserved_as_text() {
    let fake = answering().await;
    let rig = Setup::at(&fake).open().await;
    let book = "word ".repeat(40_000);
    let at_openai = json!({"image_url": format!("data:{book}")});
    let of_type = json!({"type": "input_image", "image_url": format!("data:{book}")});
    let at_anthropic = json!({"a": {"type": "image", "source": {"type": "base64", "data": book}}});
    let tools = |default: &Value| json!([{"type": "function", "name": "f", "parameters": {"default": default}, "content": [default]}]);
    let namespace = json!([{"type": "namespace", "name": "n", "tools": tools(&of_type)}]);
    let items = [
        json!({"type": "tool_search_output", "tools": tools(&at_openai)}),
        json!({"type": "tool_search_output", "tools": tools(&of_type)}),
        json!({"type": "additional_tools", "tools": namespace}),
        json!({"type": "tool_search_call", "arguments": {"a": of_type}}),
        json!({"type": "tool_search_call", "arguments": of_type}),
        json!({"type": "local_shell_call", "action": {"type": "exec", "env": of_type}}),
        json!({"role": "user", "content": [{"type": "input_text", "text": "x", "image_url": format!("data:{book}")}]}),
        json!({"role": "user", "content": [at_openai]}),
    ];
    let mut cases: Vec<_> = items
        .into_iter()
        .map(|it| (RESPONSES, json!({"model": "gpt-5", "max_output_tokens": MOST_OUTPUT, "input": [it]})))
        .collect();
    cases.push((
        CHAT,
        said_in_chat(json!({"type": "text", "text": "x", "image_url": {"url": format!("data:{book}")}})),
    ));
    for kind in ["tool_use", "server_tool_use", "mcp_tool_use"] {
        let block = json!({"type": kind, "name": "tool_search_tool_regex", "input": at_anthropic});
        cases.push((MESSAGES, said_to_claude(block)));
    }
    cases.push((MESSAGES, said_to_claude(json!({"type": "text", "text": "x", "citations": at_anthropic}))));
    for (path, body) in cases {
        let reserved = reserved(&rig, path, &body).await;
        let shown: String = body.to_string().chars().take(300).collect();
        assert!(reserved >= book.len() as u64, "{reserved} for {shown}");
    }
}

#[tokio::test]
async fn an_image_is_not_reserved_by_its_bytes_wherever_a_model_is_shown_one() {
    let fake = answering().await;
    let rig = Setup::at(&fake).open().await;
    let data = "A".repeat(400_000);
    let url = format!("data:image/png;base64,{data}");
    let source = json!({"type": "base64", "media_type": "image/png", "data": data});
    let image = json!({"type": "image", "source": source});
    let to_gpt = json!({"type": "input_image", "image_url": url});
    let item = |it: Value| json!({"model": "gpt-5", "max_output_tokens": MOST_OUTPUT, "input": [it]});
    let screenshot = json!({"image_url": url, "type": "computer_screenshot"});
    let shown = json!({"type": "document", "source": {"type": "content", "content": [image]}});
    let cases = [
        (MESSAGES, said_to_claude(image.clone())),
        (MESSAGES, said_to_claude(json!({"type": "tool_result", "tool_use_id": "t", "content": [image]}))),
        (MESSAGES, said_to_claude(shown)),
        (RESPONSES, said_to_gpt(to_gpt.clone())),
        (RESPONSES, item(json!({"type": "function_call_output", "call_id": "c", "output": [to_gpt]}))),
        (RESPONSES, item(json!({"type": "computer_call_output", "call_id": "c", "output": screenshot}))),
        (CHAT, said_in_chat(json!({"type": "image_url", "image_url": {"url": url}}))),
    ];
    for (path, body) in cases {
        let reserved = reserved(&rig, path, &body).await;
        let shown: String = body.to_string().chars().take(200).collect();
        assert!(reserved < 60_000, "{reserved} for {shown}");
    }
}

#[tokio::test]
async fn a_document_that_the_budget_cannot_pay_is_refused_and_the_run_goes_on() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_tokens = Some(100_000);
    let rig = setup.open().await;
    let (status, body) = rig.post(MESSAGES, &said_to_claude(base64("document", "application/pdf"))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("send its text instead"), "{body}");
    assert_eq!(*rig.ledger.exceeded.lock().unwrap(), Vec::<String>::new());
    assert_eq!(rig.post(MESSAGES, &message()).await.0, StatusCode::OK);
    assert_eq!(fake.seen().len(), 1);
}

/// The attack: an agent asks the vendor to keep its input for an hour, which is dearer than keeping it for minutes.
#[tokio::test]
async fn input_that_is_kept_for_an_hour_costs_no_more_than_was_reserved() {
    let kept = json!({"type": "message", "usage": {"input_tokens": 0, "output_tokens": 0,
        "cache_creation_input_tokens": 60_000, "cache_creation": {"ephemeral_1h_input_tokens": 60_000}}});
    let fake = Fake::start(move |_| Reply::json(200, &kept)).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_cost_micro_usd = Some(10_000_000);
    let rig = setup.open().await;
    // A byte each, as dense as text can be.
    let text = json!({"type": "text", "text": "~".repeat(60_000), "cache_control": {"type": "ephemeral", "ttl": "1h"}});
    assert_eq!(rig.post(MESSAGES, &said_to_claude(text)).await.0, StatusCode::OK);
    rig.routes.settle().await;
    let reserved = rig.ledger.begun.lock().unwrap()[0].reserved.cost_micro_usd;
    let spent = rig.ledger.ended.lock().unwrap()[0].spent.cost_micro_usd;
    assert!(spent <= reserved, "{spent} is more than {reserved}");
}

/// The attack: an agent sends so much input that the vendor charges all of it at a dearer rate.
#[tokio::test]
async fn a_long_input_costs_no_more_than_was_reserved() {
    let long = json!({"type": "message", "usage": {"input_tokens": 250_000, "output_tokens": MOST_OUTPUT}});
    let fake = Fake::start(move |_| Reply::json(200, &long)).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_cost_micro_usd = Some(10_000_000);
    let rig = setup.open().await;
    let text = json!({"type": "text", "text": "~".repeat(250_000)});
    assert_eq!(rig.post(MESSAGES, &said_to_claude(text)).await.0, StatusCode::OK);
    rig.routes.settle().await;
    // The model's list price is $3 and $15 for a million tokens, and $6 and $22.50 for what is longer than 200,000.
    let charged = 250_000 * 6 + MOST_OUTPUT * 45 / 2;
    let reserved = rig.ledger.begun.lock().unwrap()[0].reserved.cost_micro_usd;
    let spent = rig.ledger.ended.lock().unwrap()[0].spent.cost_micro_usd;
    assert_eq!(spent, charged);
    // All of it could be kept for an hour, at twice that rate.
    assert!(reserved >= 2 * 250_000 * 6, "{reserved} is less than the vendor can charge");
}

#[tokio::test]
async fn where_nobody_knows_what_a_long_input_costs_a_budget_does_not_let_it_be_asked_for() {
    let asked = async |model: &str, budget: Option<u64>| {
        let fake = Fake::start(|_| answered()).await;
        let mut setup = Setup::at(&fake);
        setup.grant.budget.max_cost_micro_usd = budget;
        let rig = setup.open().await;
        let mut body = said_to_claude(json!({"type": "text", "text": "hi"}));
        body["model"] = json!(model);
        let betas = "effort-2025-11-24,context-1m-2025-08-07";
        let request = rig.request("POST", MESSAGES).header("anthropic-beta", betas);
        let answer = rig.send(request.body(full(body.to_string())).unwrap()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        fake.seen()[0].headers["anthropic-beta"].to_str().unwrap().to_owned()
    };
    let budget = Some(10_000_000);
    assert_eq!(asked("claude-opus-4-8", budget).await, "effort-2025-11-24");
    assert_eq!(asked("claude-sonnet-4-5", budget).await, "effort-2025-11-24,context-1m-2025-08-07");
    assert_eq!(asked("claude-opus-4-8", None).await, "effort-2025-11-24,context-1m-2025-08-07");
}
