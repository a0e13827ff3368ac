//! What an agent asks of its model. The input is a method and a path, headers, an empty line and a body, with
//! plain newlines.

use cofferdam_broker::fuzzing::{Endpoint, Rebuilt, Rules, check};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use serde_json::Value;

use crate::pieces::first_line;

const BODY_BYTES: usize = 256 << 10;
/// Headers that never pass, whatever they say.
const NEVER_PASS: [&str; 6] =
    ["x-api-key", "authorization", "cookie", "host", "openai-organization", "content-encoding"];

pub(crate) fn feed(input: &[u8]) {
    let (request_line, mut rest) = first_line(input);
    let request_line = String::from_utf8_lossy(request_line);
    let Some((method, uri)) = request_line.split_once(' ') else { return };
    let (Ok(method), Ok(uri)) = (method.parse::<Method>(), uri.parse::<Uri>()) else { return };
    let mut headers = HeaderMap::new();
    loop {
        let (line, after) = first_line(rest);
        rest = after;
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line.get(colon + 1..).unwrap_or_default().trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let rules = Rules { placeholder: None, vendor_tools: Vec::new(), body_bytes: BODY_BYTES };
    if let Ok(rebuilt) = check(&method, &uri, &headers, rest, &rules) {
        passes(rebuilt, rest);
    }
    let closed = Rules { placeholder: Some("the placeholder".to_owned()), ..rules };
    if check(&method, &uri, &headers, rest, &closed).is_ok() && uri.path().ends_with("/v1/messages") {
        let carries = |value: &HeaderValue| value.as_bytes().ends_with(b"the placeholder");
        assert!(headers.values().any(carries), "passed without the placeholder");
    }
}

fn passes(rebuilt: Rebuilt, body: &[u8]) {
    for name in NEVER_PASS {
        assert!(!rebuilt.headers.contains_key(name), "{name} passed");
    }
    let endpoint = rebuilt.endpoint;
    let Some(payload) = rebuilt.payload else {
        assert!(matches!(endpoint, Endpoint::Models(_) | Endpoint::Preflight(_)));
        return;
    };
    let stream = payload.stream;
    let sent = payload.into_bytes(Some(7));
    // An escape of six characters can be written where one byte was.
    assert!(sent.len() <= BODY_BYTES.max(body.len()) * 6 + 200, "it grew to {}", sent.len());
    let sent: Value = serde_json::from_slice(&sent).expect("what is forwarded is JSON");
    assert_eq!(sent["stream"].as_bool().unwrap_or(false), stream);
    assert!(sent["background"].as_bool() != Some(true) && !sent["background"].is_object());
    match endpoint {
        Endpoint::Messages | Endpoint::CountTokens => {
            let container = !matches!(&sent["container"], Value::Null);
            assert!(!container && sent["mcp_servers"].is_null(), "{sent}");
            assert!(!anthropic_fetches(&sent["messages"]) && !anthropic_fetches(&sent["system"]), "{sent}");
        }
        Endpoint::Responses => {
            assert_eq!(sent["store"], false);
            assert!(sent["previous_response_id"].is_null() && sent["conversation"].is_null(), "{sent}");
            assert!(!openai_fetches(&sent["input"]), "{sent}");
        }
        Endpoint::Chat => {
            assert!(sent["web_search_options"].is_null() && sent["n"].is_null() && sent["store"].is_null());
            assert!(!stream || sent["stream_options"]["include_usage"] == true);
            assert!(!openai_fetches(&sent["messages"]), "{sent}");
        }
        Endpoint::Preflight(_) | Endpoint::Models(_) => unreachable!("these have no payload"),
    }
    tools(&sent["tools"]);
}

/// No tool that the vendor runs.
fn tools(tools: &Value) {
    for tool in tools.as_array().into_iter().flatten() {
        let kind = tool["type"].as_str().unwrap_or("custom");
        let vendors = ["web_search", "web_fetch", "mcp", "code_", "image_", "file_search", "computer_use"];
        assert!(!vendors.iter().any(|vendor| kind.starts_with(vendor)), "{tool}");
        tools_in_namespace(tool, kind);
    }
}

fn tools_in_namespace(tool: &Value, kind: &str) {
    if kind == "namespace" {
        tools(&tool["tools"]);
    }
}

/// Whether something in there makes Anthropic fetch. What a tool was called with is data.
fn anthropic_fetches(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(anthropic_fetches),
        Value::Object(fields) => {
            let is_call = fields.get("type").and_then(Value::as_str) == Some("tool_use");
            let source = fields.get("source").and_then(|source| source.get("type")).and_then(Value::as_str);
            let within = |(name, field): (&String, &Value)| {
                !(is_call && name == "input") && name != "source" && anthropic_fetches(field)
            };
            matches!(source, Some("url" | "file"))
                || fields.contains_key("file_id")
                || fields.iter().any(within)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The same for OpenAI, where what a tool was called with is text.
fn openai_fetches(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(openai_fetches),
        Value::Object(fields) => {
            let image = fields.get("image_url").map(|url| url.get("url").unwrap_or(url));
            let fetched = |url: &str| !url.starts_with("data:");
            let kept = |name: &str| fields.get(name).is_some_and(|id| !id.is_null());
            image.and_then(Value::as_str).is_some_and(fetched)
                || kept("file_id")
                || kept("file_url")
                || fields.values().any(openai_fetches)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
