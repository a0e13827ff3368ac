//! Whose a run is. An owner outlives the keys that act for it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::value::ValueError;

/// The name of an owner of keys and runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OwnerName(String);

impl OwnerName {
    /// The longest name, in bytes.
    pub const LONGEST: usize = 100;

    /// The owner of what was on record before there were owners.
    #[must_use]
    pub fn system() -> Self {
        Self("system".to_owned())
    }

    /// The owner of runs that callers without a key make.
    #[must_use]
    pub fn loopback() -> Self {
        Self("loopback".to_owned())
    }

    /// The owner of runs that are made at the command line.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OwnerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for OwnerName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let is_plain = !text.is_empty() && !text.chars().any(char::is_control) && text.trim() == text;
        if is_plain && text.len() <= Self::LONGEST {
            return Ok(Self(text.to_owned()));
        }
        let hint = "type 1 to 100 bytes without control characters and without spaces around, such as `ci`";
        Err(ValueError::new(text, "is not the name of an owner", hint))
    }
}

impl TryFrom<String> for OwnerName {
    type Error = ValueError;

    fn try_from(text: String) -> Result<Self, ValueError> {
        text.parse()
    }
}

impl From<OwnerName> for String {
    fn from(owner: OwnerName) -> Self {
        owner.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_one_clean_line() {
        assert_eq!("the ci team".parse::<OwnerName>().unwrap().as_str(), "the ci team");
        for text in ["", " ci", "ci ", "a\nb", &"x".repeat(101)] {
            assert!(text.parse::<OwnerName>().is_err(), "{text:?}");
        }
    }
}
