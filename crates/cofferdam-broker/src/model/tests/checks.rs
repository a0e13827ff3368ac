//! Whatever is asked, what is forwarded keeps to the rules.

use http::{HeaderMap, Method, Uri};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::request::{Rules, check};
use super::rig::{CHAT, MESSAGES, RESPONSES};

/// Values made of the words that matter.
fn value() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "url",
        "file",
        "base64",
        "content",
        "text",
        "image",
        "document",
        "tool_use",
        "tool_result",
        "function",
        "custom",
        "web_search",
        "mcp",
        "https://x",
        "data:x",
        "user",
        "namespace",
        "shell",
        "search_result",
    ]);
    let leaf = prop_oneof![
        word.prop_map(|word| json!(word)),
        any::<i32>().prop_map(|n| json!(n)),
        Just(json!(null))
    ];
    let name = prop::sample::select(vec![
        "type",
        "source",
        "content",
        "file_id",
        "file_url",
        "image_url",
        "url",
        "input",
        "tools",
        "text",
        "role",
    ]);
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name.clone(), inner, 0..5).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

/// Whether something in there would make the vendor fetch, without what is only data of a tool.
fn fetches(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(fetches),
        Value::Object(fields) => {
            let is_call = fields.get("type") == Some(&json!("tool_use"));
            let source = fields.get("source").and_then(|source| source.get("type"));
            let image = fields.get("image_url").map(|url| url.get("url").unwrap_or(url));
            matches!(source.and_then(Value::as_str), Some("url" | "file"))
                || image.and_then(Value::as_str).is_some_and(|url| url.starts_with("http"))
                || fields.iter().any(|(name, field)| !(is_call && name == "input") && fetches(field))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

proptest! {
    #[test]
    fn nothing_that_is_forwarded_makes_the_vendor_fetch(
        path in prop::sample::select(vec![MESSAGES, RESPONSES, CHAT]),
        said in prop::collection::vec(value(), 0..4),
        tools in prop::collection::vec(value(), 0..3),
    ) {
        let rules = Rules { placeholder: None, vendor_tools: Vec::new(), body_bytes: 1 << 20 };
        let body = json!({"model": "m", "messages": said, "input": said, "tools": tools, "max_tokens": 9});
        let text = body.to_string();
        let uri = Uri::from_static(path);
        if let Ok(rebuilt) = check(&Method::POST, &uri, &HeaderMap::new(), text.as_bytes(), &rules) {
            let sent: Value = serde_json::from_slice(&rebuilt.payload.unwrap().into_bytes(Some(7))).unwrap();
            prop_assert!(!fetches(&sent["messages"]) && !fetches(&sent["input"]), "{sent}");
            for tool in sent["tools"].as_array().unwrap() {
                prop_assert!(!matches!(tool["type"].as_str(), Some("web_search" | "mcp" | "url")), "{tool}");
            }
        }
    }

    #[test]
    fn any_bytes_are_checked_without_a_panic(path in "/model/[\\PC]{0,30}", body in prop::collection::vec(any::<u8>(), 0..60)) {
        let rules = Rules { placeholder: None, vendor_tools: Vec::new(), body_bytes: 1 << 20 };
        if let Ok(uri) = path.parse::<Uri>() {
            let found = check(&Method::POST, &uri, &HeaderMap::new(), &body, &rules);
            prop_assert!(found.is_err());
        }
    }
}
