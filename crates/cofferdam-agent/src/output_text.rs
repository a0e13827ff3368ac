//! Bytes that an agent printed, as JSON. JSON knows only Unicode, agents print what they like.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// `{"text"}`, and where the bytes are not UTF-8 also `"base64"`: people read the text, and the bytes
/// are not lost.
#[must_use]
pub fn shown_text(bytes: &[u8]) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("text".to_owned(), Value::String(String::from_utf8_lossy(bytes).into_owned()));
    if std::str::from_utf8(bytes).is_err() {
        data.insert("base64".to_owned(), Value::String(STANDARD.encode(bytes)));
    }
    data
}

/// `{"text"}` or `{"base64"}`: for what is only put together again and shown to nobody.
#[must_use]
pub fn exact_text(bytes: &[u8]) -> Map<String, Value> {
    let (key, value) = match std::str::from_utf8(bytes) {
        Ok(text) => ("text", text.to_owned()),
        Err(_) => ("base64", STANDARD.encode(bytes)),
    };
    Map::from_iter([(key.to_owned(), Value::String(value))])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_unicode_is_shown_and_kept() {
        assert_eq!(Value::Object(shown_text(b"a\xffb")), json!({ "text": "a\u{fffd}b", "base64": "Yf9i" }));
        assert_eq!(Value::Object(exact_text(b"a\xffb")), json!({ "base64": "Yf9i" }));
    }

    #[test]
    fn unicode_is_text_alone() {
        assert_eq!(Value::Object(shown_text("né".as_bytes())), json!({ "text": "né" }));
        assert_eq!(Value::Object(exact_text(b"")), json!({ "text": "" }));
    }
}
