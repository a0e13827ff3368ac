//! The checks read a request once and keep nothing of it. They agree with those that see all of it at once.

use std::fmt::Write as _;

use cofferdam_core::VendorTool;
use http::{HeaderMap, Method, Uri};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::request::{Rules, check};
use super::super::route::Endpoint;
use super::oracle;
use super::rig::{CHAT, MESSAGES, RESPONSES};

const COUNT_TOKENS: &str = "/model/anthropic/v1/messages/count_tokens";
const ENDPOINTS: [(&str, Endpoint); 4] = [
    (MESSAGES, Endpoint::Messages),
    (COUNT_TOKENS, Endpoint::CountTokens),
    (RESPONSES, Endpoint::Responses),
    (CHAT, Endpoint::Chat),
];

/// Words that some check looks for, and some that none does.
const WORDS: [&str; 41] = [
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
    "web_search_preview",
    "image_generation",
    "mcp",
    "mcp_call",
    "https://x",
    "data:x",
    "user",
    "namespace",
    "shell",
    "local",
    "local_shell",
    "apply_patch",
    "search_result",
    "container_upload",
    "item_reference",
    "code_interpreter_call",
    "bash_20250124",
    "web_search_20250305",
    "additional_tools",
    "auto",
    "gpt-5",
    "gpt-4o-search-preview",
    "o3-deep-research",
    "a\"b\\c\n\u{1}\u{7f}",
    "ä€😀",
    "",
    "a text that is longer than any of the words which mean something to somebody, and so is only kept in part",
    "mcp_a_text_that_is_longer_than_any_of_the_words_which_mean_something_to_somebody",
    "data:image/png;base64,AAAA",
];

const NAMES: [&str; 17] = [
    "type",
    "source",
    "content",
    "file_id",
    "file_url",
    "image_url",
    "container_id",
    "url",
    "data",
    "input",
    "tools",
    "environment",
    "text",
    "role",
    "budget_tokens",
    "include_usage",
    "\u{e4}\"",
];

const FIELDS: [&str; 33] = [
    "model",
    "messages",
    "input",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "thinking",
    "background",
    "store",
    "mcp_servers",
    "container",
    "previous_response_id",
    "conversation",
    "prompt",
    "web_search_options",
    "n",
    "service_tier",
    "metadata",
    "temperature",
    "messages",
    "messages",
    "input",
    "input",
    "tools",
    "model",
    "model",
    "a_field_of_tomorrow",
    "\u{f6}ne_that_nobody_knows",
];

/// JSON whose fields have an order, because what is read may depend on it, and may occur twice.
#[derive(Debug, Clone)]
enum Tree {
    Leaf(Value),
    List(Vec<Tree>),
    Object(Vec<(&'static str, Tree)>),
}

/// How a tree is written.
#[derive(Debug, Clone, Copy)]
struct Style {
    space: &'static str,
    escapes: bool,
}

impl Tree {
    fn write(&self, style: Style, out: &mut String) {
        match self {
            Self::Leaf(Value::String(text)) => write_text(text, style, out),
            Self::Leaf(value) => write!(out, "{value}").unwrap(),
            Self::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { style.space } else { "," });
                    item.write(style, out);
                }
                out.push(']');
            }
            Self::Object(fields) => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    out.push_str(style.space);
                    write_text(name, style, out);
                    out.push_str(style.space);
                    out.push(':');
                    out.push_str(style.space);
                    value.write(style, out);
                }
                out.push_str(style.space);
                out.push('}');
            }
        }
    }
}

/// Every letter as an escape, or none that need not be one.
fn write_text(text: &str, style: Style, out: &mut String) {
    if !style.escapes {
        return write!(out, "{}", json!(text)).unwrap();
    }
    out.push('"');
    for unit in text.encode_utf16() {
        write!(out, "\\u{unit:04X}").unwrap();
    }
    out.push('"');
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        6 => prop::sample::select(WORDS.to_vec()).prop_map(|word| json!(word)),
        1 => any::<u16>().prop_map(|n| json!(n)),
        1 => any::<i64>().prop_map(|n| json!(n)),
        1 => any::<bool>().prop_map(|it| json!(it)),
        1 => Just(json!(1.5)),
        2 => Just(Value::Null),
    ];
    leaf.prop_map(Tree::Leaf).prop_recursive(5, 48, 6, |inner| {
        let field = (prop::sample::select(NAMES.to_vec()), inner.clone());
        prop_oneof![
            1 => prop::collection::vec(inner, 0..4).prop_map(Tree::List),
            2 => prop::collection::vec(field, 0..6).prop_map(Tree::Object),
        ]
    })
}

/// Tools as agents offer them, in any order of their fields.
fn tool() -> impl Strategy<Value = Tree> {
    let kinds = [
        "function",
        "namespace",
        "web_search",
        "web_search_1",
        "web_fetch_1",
        "shell",
        "custom",
        "mcp",
        "image_generation",
        "bash_1",
    ];
    let kind = prop::sample::select(kinds.to_vec()).prop_map(|kind| Tree::Leaf(json!(kind)));
    let inner = prop::collection::vec(prop_oneof![tree(), kind.clone().prop_map(of_kind)], 0..3);
    let fields = (kind, inner.prop_map(Tree::List), tree());
    (fields, any::<bool>(), any::<bool>()).prop_map(|((kind, inner, other), first, has_tools)| {
        let mut fields = vec![("environment", other)];
        if has_tools {
            fields.push(("tools", inner));
        }
        fields.insert(if first { 0 } else { fields.len() }, ("type", kind));
        Tree::Object(fields)
    })
}

fn of_kind(kind: Tree) -> Tree {
    Tree::Object(vec![("type", kind)])
}

fn request() -> impl Strategy<Value = Tree> {
    let value = prop_oneof![
        3 => tree(),
        2 => prop::collection::vec(tree(), 0..4).prop_map(Tree::List),
        2 => prop::collection::vec(tool(), 0..4).prop_map(Tree::List),
        1 => prop::collection::vec(tool(), 0..3)
            .prop_map(|tools| Tree::List(vec![Tree::Object(vec![("tools", Tree::List(tools))])])),
    ];
    let field = (prop::sample::select(FIELDS.to_vec()), value);
    prop::collection::vec(field, 0..7).prop_flat_map(|fields| {
        (Just(fields), any::<bool>(), any::<prop::sample::Index>()).prop_map(|(mut fields, is_good, at)| {
            if is_good {
                // Most requests fail for something else than what is looked for, unless the rest is as it should be.
                let mut seen = std::collections::HashSet::new();
                fields.retain(|(name, _)| {
                    !matches!(*name, "model" | "stream" | "max_tokens") && seen.insert(*name)
                });
                fields.insert(at.index(fields.len() + 1), ("model", Tree::Leaf(json!("m"))));
                fields.push(("stream", Tree::Leaf(json!(true))));
                fields.insert(0, ("max_tokens", Tree::Leaf(json!(900))));
            }
            Tree::Object(fields)
        })
    })
}

/// Whether a tool that is no namespace has `tools` before its `type`: whether it is one was not known when they were read,
/// and then it is refused where it would pass.
fn is_out_of_order(value: &Tree) -> bool {
    match value {
        Tree::Leaf(_) => false,
        Tree::List(items) => items.iter().any(is_out_of_order),
        Tree::Object(fields) => {
            let at = |name| fields.iter().position(|(field, _)| *field == name);
            let early = at("tools").is_some_and(|tools| at("type").is_none_or(|kind| tools < kind));
            early || fields.iter().any(|(_, field)| is_out_of_order(field))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn a_request_that_is_read_once_is_judged_as_one_that_is_seen_at_once(
        (path, endpoint) in prop::sample::select(ENDPOINTS.to_vec()),
        request in request(),
        space in prop::sample::select(vec!["", " ", "\n\t\r "]),
        escapes in any::<bool>(),
        vendor_tools in prop::sample::subsequence(VendorTool::ALL.to_vec(), 0..=2),
    ) {
        let mut text = String::new();
        request.write(Style { space, escapes }, &mut text);
        let rules = Rules { placeholder: None, vendor_tools: vendor_tools.clone(), body_bytes: 1 << 20 };
        let found = check(&Method::POST, &Uri::from_static(path), &HeaderMap::new(), text.as_bytes(), &rules);
        match (found, oracle::rebuild(endpoint, text.as_bytes(), &vendor_tools)) {
            (Err(found), Err(expected)) => {
                prop_assert_eq!(found.status, expected.status, "{}", text);
                let is_short = expected.message.len() < 300;
                if expected.reason != "json" && is_short && !is_out_of_order(&request) {
                    prop_assert_eq!((found.reason, shortened(&found.message)),
                        (expected.reason, shortened(&expected.message)), "{}", text);
                }
            }
            (Ok(found), Ok(expected)) => {
                let payload = found.payload.unwrap();
                prop_assert_eq!(
                    (&payload.model, payload.stream, payload.max_output, payload.least_output),
                    (&expected.model, expected.stream, expected.max_output, expected.least_output)
                );
                prop_assert!(payload.most_input >= expected.image_tokens);
                prop_assert_eq!(found.stripped, expected.stripped);
                let sent: Value = serde_json::from_slice(&payload.into_bytes(Some(77))).unwrap();
                let mut wanted = expected.sent;
                wanted[expected.limit_field] = json!(77);
                prop_assert_eq!(sent, wanted, "{}", text);
            }
            (Err(found), Ok(_)) if is_out_of_order(&request) => prop_assert_eq!(found.reason, "json"),
            (found, expected) => prop_assert!(false, "{}: {:?} and not {:?}", text, found, expected),
        }
    }

    #[test]
    fn bytes_that_are_cut_or_changed_are_taken_or_refused_as_by_another_reader(
        request in request(),
        at in any::<prop::sample::Index>(),
        with in prop_oneof![Just(None), any::<u8>().prop_map(Some)],
    ) {
        let mut text = String::new();
        request.write(Style { space: "", escapes: false }, &mut text);
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        match with {
            None => bytes.truncate(at),
            Some(byte) => bytes[at] = byte,
        }
        let rules = Rules { placeholder: None, vendor_tools: Vec::new(), body_bytes: 1 << 20 };
        let found = check(&Method::POST, &Uri::from_static(MESSAGES), &HeaderMap::new(), &bytes, &rules);
        let expected = oracle::rebuild(Endpoint::Messages, &bytes, &[]);
        prop_assert_eq!(found.map(drop).map_err(|it| it.reason), expected.map(drop).map_err(|it| it.reason),
            "{}", String::from_utf8_lossy(&bytes));
    }
}

/// Long names are kept in part.
fn shortened(message: &str) -> String {
    message.split('`').map(|part| part.chars().take(40).collect::<String>()).collect::<Vec<_>>().join("`")
}
