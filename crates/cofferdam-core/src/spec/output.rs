//! Reads what an agent wrote, as far as it is what was asked for. Whatever is missing or of another type is empty here:
//! who must know the difference looks at the value itself.

use serde_json::Value;

/// The most characters of somebody's text that a message of ours repeats.
const MOST_QUOTED: usize = 60;

/// The text of a field, without the space around it.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).map_or("", str::trim)
}

/// The items of a field.
pub(super) fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of a field that says something.
pub(super) fn texts<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    items(value, field).iter().filter_map(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// The ids of a field's items that have one.
pub(super) fn ids<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    items(value, field).iter().map(|item| text(item, "id")).filter(|id| !id.is_empty())
}

/// Hundredths of an hour, so that sums do not depend on their order.
pub(super) fn hundredths(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| (0.0..=1_000_000.0).contains(number))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "its range was checked")]
    let hundredths = (number * 100.0).round() as u64;
    Some(hundredths)
}

/// Somebody's text within a message: short, on one line, and unable to end its quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() || c == '`' { '\u{fffd}' } else { c });
    let shown: String = chars.by_ref().take(MOST_QUOTED).collect();
    let more = if chars.next().is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}

/// The text with at most so many characters, and whether that is all of it.
pub(super) fn cut(text: &str, most: usize) -> (&str, bool) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], false),
        None => (text, true),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_of_another_type_is_empty() {
        let value = json!({"a": 1, "b": ["x", 2, " ", null], "c": [{"id": "1"}, {"id": 2}, "3"]});
        assert_eq!(text(&value, "a"), "");
        assert_eq!(texts(&value, "b").collect::<Vec<_>>(), ["x"]);
        assert_eq!(ids(&value, "c").collect::<Vec<_>>(), ["1"]);
        assert!(items(&json!("text"), "b").is_empty() && items(&json!([]), "b").is_empty());
        assert_eq!(hundredths(&json!(1.25)), Some(125));
        assert_eq!(hundredths(&json!(-1)), None);
        assert_eq!(hundredths(&json!(1e300)), None);
    }

    #[test]
    fn a_quoted_text_stays_in_its_quotes() {
        assert_eq!(quoted("a`b\nc"), "`a\u{fffd}b\u{fffd}c`");
        assert_eq!(quoted(&"é".repeat(1_000)).chars().count(), MOST_QUOTED + 3);
    }
}
