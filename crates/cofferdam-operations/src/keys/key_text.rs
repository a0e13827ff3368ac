//! An API key: `cof_` and 32 random bytes.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::random::random;

const PREFIX: &str = "cof_";
const BYTES: usize = 32;

/// An API key. It is shown once, when it is made; the record has its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

/// A text that is no API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not an API key (it begins with `{PREFIX}`)")]
pub struct NotAKey;

impl KeyText {
    /// A new key.
    pub(crate) fn new() -> Self {
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random::<BYTES>())))
    }

    /// The key itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it, in hexadecimal. It has 256 random bits, so that nothing slower than SHA-256 is needed.
    #[must_use]
    pub fn sha256(&self) -> String {
        Sha256::digest(self.0.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Never the key itself: it would end up in a log.
impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(…)")
    }
}

impl FromStr for KeyText {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let body = text.strip_prefix(PREFIX).and_then(|body| URL_SAFE_NO_PAD.decode(body).ok());
        match body {
            Some(body) if body.len() == BYTES => Ok(Self(text.to_owned())),
            Some(_) | None => Err(NotAKey),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_shows_itself_to_nobody() {
        let key = KeyText::new();
        assert_eq!(key.reveal().parse::<KeyText>(), Ok(key.clone()));
        assert!(!format!("{key:?}").contains(&key.reveal()[4..]));
        assert_ne!(key, KeyText::new());
        for text in ["", "cof_", "cof_abc", "key_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(text.parse::<KeyText>(), Err(NotAKey), "{text}");
        }
    }
}
