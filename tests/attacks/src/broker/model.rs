//! Attempts on the routes to the model.

use serde_json::{Value, json};

use super::BrokerAttempt;
use super::Refused::{Model, No, Proxy};

const MESSAGES: &str = "/model/anthropic/v1/messages";
const RESPONSES: &str = "/model/openai/v1/responses";
const CHAT: &str = "/model/openai/v1/chat/completions";

/// Ways to other interfaces of the vendor's, or of the host's.
pub(super) fn routes() -> Vec<BrokerAttempt> {
    let cases = [
        ("dot_segments", "POST", "/model/anthropic/v1/messages/../files", Model("path")),
        ("encoded_dot_segments", "POST", "/model/anthropic/v1/%2e%2e/v1/files", Model("path")),
        ("encoded_slash", "POST", "/model/anthropic/v1%2fmessages", Model("path")),
        ("double_slash", "POST", "/model/anthropic//v1/messages", Model("path")),
        ("path_parameter", "POST", "/model/anthropic/v1/messages;x", Model("path")),
        ("vendors_files", "POST", "/model/anthropic/v1/files", Model("path")),
        ("vendors_batches", "POST", "/model/anthropic/v1/messages/batches", Model("path")),
        ("vendors_keys", "GET", "/model/anthropic/v1/organizations/api_keys", Model("path")),
        ("stored_response", "GET", "/model/openai/v1/responses/resp_1", Model("path")),
        ("vendors_uploads", "POST", "/model/openai/v1/files", Model("path")),
        ("vendors_admin", "GET", "/model/openai/v1/organization/admin_api_keys", Model("path")),
        ("unknown_vendor", "POST", "/model/other/v1/messages", Model("path")),
        ("other_method", "DELETE", "/model/openai/v1/models", Model("method")),
        ("reading_messages", "GET", MESSAGES, Model("method")),
        ("query", "POST", "/model/anthropic/v1/messages?beta=true&x=1", Model("query")),
        ("vendor_by_its_address", "POST", "http://api.anthropic.com/v1/messages", Proxy("allow-list")),
        (
            "broker_by_its_address",
            "POST",
            "http://127.0.0.1:3128/model/anthropic/v1/messages",
            Proxy("allow-list"),
        ),
        (
            "dot_segments_out_of_the_model",
            "POST",
            "/x/../model/anthropic/v1/messages",
            Proxy("there is nothing at"),
        ),
    ];
    let wire = |method: &str, path: &str| {
        let host = path.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap_or("x");
        post_to(method, path, &format!("Host: {host}\r\n"), &message().to_string())
    };
    let mut made: Vec<_> = cases
        .into_iter()
        .map(|(name, method, path, by)| BrokerAttempt::new(name, wire(method, path), by))
        .collect();
    let upgrade = post_to("POST", RESPONSES, "Host: x\r\nUpgrade: websocket\r\n", "{}");
    made.push(BrokerAttempt::new("upgrade", upgrade, Model("upgrade")));
    let injected = post_to("POST", MESSAGES, "Host: x\r\nanthropic-version: a\rx-api-key: b\r\n", "{}");
    made.push(BrokerAttempt::new("header_injection", injected, Proxy("a control character in a header")));
    made
}

/// Whatever makes the vendor fetch or keep things on the agent's behalf.
pub(super) fn vendor_side() -> Vec<BrokerAttempt> {
    let url = json!({"type": "url", "url": "http://169.254.169.254/"});
    let block = |block: Value| with(message(), "messages", json!([{"role": "user", "content": [block]}]));
    let said = |item: Value| with(response(), "input", json!([{"role": "user", "content": [item]}]));
    let tool = |body: Value, kind: &str| with(body, "tools", json!([{"type": kind, "name": "t"}]));
    let nested =
        json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": url}]});
    let cases = [
        ("vendors_web_search", MESSAGES, tool(message(), "web_search_20250305")),
        ("vendors_web_fetch", MESSAGES, tool(message(), "web_fetch_20250910")),
        ("vendors_code_execution", MESSAGES, tool(message(), "code_execution_20250825")),
        ("vendors_connectors", MESSAGES, with(message(), "mcp_servers", json!([url]))),
        ("vendors_container", MESSAGES, with(message(), "container", json!("c"))),
        ("image_by_url", MESSAGES, block(json!({"type": "image", "source": url}))),
        ("image_by_url_in_a_result", MESSAGES, block(nested)),
        (
            "vendors_file",
            MESSAGES,
            block(json!({"type": "document", "source": {"type": "file", "file_id": "f"}})),
        ),
        ("previous_response", RESPONSES, with(response(), "previous_response_id", json!("r"))),
        ("conversation", RESPONSES, with(response(), "conversation", json!("c"))),
        ("connector", RESPONSES, tool(response(), "mcp")),
        ("code_interpreter", RESPONSES, tool(response(), "code_interpreter")),
        ("file_search", RESPONSES, tool(response(), "file_search")),
        ("input_file_by_id", RESPONSES, said(json!({"type": "input_file", "file_id": "f"}))),
        ("input_file_by_url", RESPONSES, said(json!({"type": "input_file", "file_url": "http://10.0.0.1/"}))),
        ("search_in_a_chat", CHAT, with(chat(), "web_search_options", json!({}))),
    ];
    let attempt = |(name, path, body): (&'static str, &str, Value)| {
        BrokerAttempt::new(
            name,
            post_to("POST", path, "Host: x\r\n", &body.to_string()),
            Model("vendor_tools"),
        )
    };
    let mut made: Vec<_> = cases.into_iter().map(attempt).collect();
    // Nobody could meter an answer that is fetched later, so this one is refused even where tools are allowed.
    let later = with(response(), "background", json!(true)).to_string();
    made.push(BrokerAttempt::new(
        "background",
        post_to("POST", RESPONSES, "Host: x\r\n", &later),
        Model("background"),
    ));
    made
}

/// Good calls, with headers that must not arrive and a wish to be stored that is not forwarded.
pub(super) fn controls() -> Vec<BrokerAttempt> {
    let headers = "Host: x\r\nx-api-key: stolen-key\r\nAuthorization: Bearer stolen-token\r\nCookie: a=stolen\r\n\
                   anthropic-organization: stolen\r\nopenai-organization: stolen\r\nopenai-project: stolen\r\n\
                   anthropic-beta: files-api-2025-04-14\r\nX-Forwarded-For: 10.9.8.7\r\n";
    let stored = with(response(), "store", json!(true));
    [("message", MESSAGES, message()), ("response", RESPONSES, stored), ("chat", CHAT, chat())]
        .map(|(name, path, body)| {
            BrokerAttempt::new(name, post_to("POST", path, headers, &body.to_string()), No)
        })
        .into()
}

fn post_to(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

fn message() -> Value {
    json!({"model": "claude-sonnet-4-5", "max_tokens": 16, "messages": [{"role": "user", "content": "hi"}]})
}

fn response() -> Value {
    json!({"model": "gpt-5", "input": [{"role": "user", "content": "hi"}], "max_output_tokens": 16})
}

fn chat() -> Value {
    json!({"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 16})
}
