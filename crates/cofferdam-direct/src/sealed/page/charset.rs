//! From bytes to characters.

use encoding_rs::{Encoding, UTF_8};

/// How much of a page is looked at for what it says of its own encoding: the standard's number.
const HEAD_BYTES: usize = 1024;

/// The text. What is no character of its encoding becomes U+FFFD.
pub(super) fn decode(bytes: &[u8], content_type: Option<&str>, is_html: bool) -> String {
    let named = content_type.and_then(|text| labelled(text.as_bytes()));
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let encoding =
        named.or_else(|| is_html.then(|| labelled(head)).flatten()).unwrap_or_else(|| guess(bytes));
    // A byte order mark goes before whatever was said.
    encoding.decode(bytes).0.into_owned()
}

/// The encoding after `charset=`, in a header or in a page's own head.
fn labelled(text: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"charset=";
    let at = text.windows(NAME.len()).position(|part| part.eq_ignore_ascii_case(NAME))?;
    let label = text[at + NAME.len()..].trim_ascii_start();
    let label = label.strip_prefix(b"\"").or_else(|| label.strip_prefix(b"'")).unwrap_or(label);
    let is_end = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"-_:.".contains(byte));
    Encoding::for_label(&label[..label.iter().position(is_end).unwrap_or(label.len())])
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    let mut detector = chardetng::EncodingDetector::new();
    detector.feed(bytes, true);
    detector.guess(None, true)
}
