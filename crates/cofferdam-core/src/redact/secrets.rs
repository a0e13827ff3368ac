//! The values that must not be seen.

use std::collections::BTreeSet;
use std::fmt;

use super::decode::decode_all;
use super::url;

/// Shorter values are not redacted: they are in innocent text by chance.
pub const SHORTEST_SECRET: usize = 8;

/// Values that must not be seen.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Adds a value, if it has [`SHORTEST_SECRET`] characters or more.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.chars().count() >= SHORTEST_SECRET {
            self.0.insert(value.to_owned());
        }
    }

    /// Adds the password or token in an address, if there is one, as it is written there and as it is meant.
    pub fn add_address(&mut self, address: &str) {
        if let Some(secret) = url::secret_of(address) {
            self.add(secret);
            self.add(&String::from_utf8_lossy(&decode_all(secret.as_bytes())));
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}
