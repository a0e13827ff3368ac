//! The way to a value: `sandbox.docker.memory`.

use std::fmt;

/// The way to a value, key by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// The way through these keys.
    #[must_use]
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(str::to_owned).collect())
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }

    /// The same way and one key further.
    #[must_use]
    pub fn with(&self, key: &str) -> Self {
        let mut longer = self.clone();
        longer.0.push(key.to_owned());
        longer
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, key) in self.0.iter().enumerate() {
            let is_plain =
                !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-$".contains(&b));
            let dot = if index == 0 { "" } else { "." };
            match is_plain {
                true => write!(f, "{dot}{key}")?,
                // `gpt-4.1` is one key.
                false => write!(f, "{dot}{key:?}")?,
            }
        }
        Ok(())
    }
}
