//! Takes secrets out of everything that is kept or shown.
//!
//! A [`Redactor`] knows values and finds them in bytes, also encoded, also in pieces. It does not look for a
//! list of encoded strings. It reads the bytes in several ways at once ([`scan`]) and compares the last 16
//! symbols of each reading with what a secret looks like there ([`forms`]). So escapes may be mixed, lines may
//! be wrapped anywhere, and each 16 symbols of a secret are found by themselves: no longer piece of it stays.
//!
//! What no reader can find is in `docs/decisions/0014-redaction.md`: compressed, encrypted or home-made
//! encodings, and pieces that are shorter.

mod decode;
mod forms;
mod scan;
mod secrets;
mod stream;
mod table;
mod url;
mod view;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use forms::Tables;
use scan::Scanner;
pub use secrets::{SHORTEST_SECRET, Secrets};
pub use stream::RedactedStream;

/// What stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// The field of a worker's line that carries bytes which are not text.
const BASE64_FIELD: &str = "base64";

/// Takes known secrets, and the credentials of any address, out of text and bytes. Cheap to clone.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<Known>,
}

#[derive(Default)]
struct Known {
    secrets: Secrets,
    /// Made at the first use: most commands never need them.
    tables: OnceLock<Tables>,
}

impl Redactor {
    /// A redactor of these secrets.
    #[must_use]
    pub fn new(secrets: Secrets) -> Self {
        Self { known: Arc::new(Known { secrets, tables: OnceLock::new() }) }
    }

    /// One that knows these values too.
    #[must_use]
    pub fn with<'a>(&self, values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut secrets = self.known.secrets.clone();
        values.into_iter().for_each(|value| secrets.add(value));
        if secrets == self.known.secrets { self.clone() } else { Self::new(secrets) }
    }

    /// The text without secrets and without credentials in addresses.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // A cut may go through a character of a secret.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The same for bytes.
    #[must_use]
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.known.secrets.is_empty() && !url::is_likely_in(bytes) {
            return Cow::Borrowed(bytes);
        }
        let mut scanner = Scanner::new();
        scanner.scan(self.tables(), bytes, scan::Input::Whole);
        let found = scanner.found();
        if found.is_empty() { Cow::Borrowed(bytes) } else { Cow::Owned(cut_out(bytes, found)) }
    }

    /// Whether it knows no secret at all.
    #[must_use]
    pub fn knows_nothing(&self) -> bool {
        self.known.secrets.is_empty()
    }

    /// Whether any known secret is in these bytes.
    #[must_use]
    pub fn finds(&self, bytes: &[u8]) -> bool {
        if self.known.secrets.is_empty() {
            return false;
        }
        let mut scanner = Scanner::of_patch();
        scanner.scan(self.tables(), bytes, scan::Input::Whole);
        !scanner.found().is_empty()
    }

    /// Redacts every string and every key. Of a field named `base64` it is what was encoded that counts.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                // An agent may print a secret of digits as a number.
                let text = number.to_string();
                if text.len() >= SHORTEST_SECRET
                    && let Cow::Owned(redacted) = self.text(&text)
                {
                    *value = Value::String(redacted);
                }
            }
            Value::String(text) => self.string(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => {
                for (name, field) in fields.iter_mut() {
                    match field {
                        Value::String(text) if name == BASE64_FIELD => self.encoded(text),
                        field => self.value(field),
                    }
                }
                if fields.keys().any(|name| matches!(self.text(name), Cow::Owned(_))) {
                    let renamed = std::mem::take(fields).into_iter();
                    fields.extend(renamed.map(|(name, field)| (self.text(&name).into_owned(), field)));
                }
            }
        }
    }

    /// The same, in place.
    pub fn string(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.text(text) {
            *text = redacted;
        }
    }

    /// Redacts a stream that arrives in chunks.
    #[must_use]
    pub fn stream(&self) -> RedactedStream {
        RedactedStream::new(self.clone(), Scanner::new())
    }

    /// Redacts a patch that arrives in chunks: known secrets alone, because an address with a password in a
    /// configuration for tests is work and no leak; and over the marks at the beginnings of its lines.
    #[must_use]
    pub fn patch_stream(&self) -> RedactedStream {
        RedactedStream::new(self.clone(), Scanner::of_patch())
    }

    fn encoded(&self, text: &mut String) {
        match STANDARD.decode(&*text) {
            Ok(bytes) => {
                if let Cow::Owned(redacted) = self.bytes(&bytes) {
                    *text = STANDARD.encode(redacted);
                }
            }
            Err(_) => self.string(text),
        }
    }

    fn tables(&self) -> &Tables {
        self.known.tables.get_or_init(|| Tables::of(&self.known.secrets))
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redactor").field(&self.known.secrets).finish()
    }
}

fn cut_out(bytes: &[u8], found: &[std::ops::Range<usize>]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for range in found {
        kept.extend_from_slice(&bytes[from..range.start]);
        kept.extend_from_slice(REDACTED.as_bytes());
        from = range.end;
    }
    kept.extend_from_slice(&bytes[from..]);
    kept
}

#[cfg(test)]
#[path = "redact_properties.rs"]
mod properties;
#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
