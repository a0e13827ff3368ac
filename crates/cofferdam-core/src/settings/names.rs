//! Names that people give: policies, variables, patterns of files.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::written_as_text;
use crate::egress::AllowRule;
use crate::value::ValueError;

/// The longest name: it becomes the name of folders and locks.
const LONGEST: usize = 64;

/// What a person calls a policy: `strict`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PolicyName(String);

/// The name of a variable of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VariableName(String);

/// A pattern of file names, such as `*.pem`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FilePattern(String);

/// What a policy lets a run connect to: a rule such as `registry.npmjs.org:443`, or the name of a set of rules such
/// as `npm`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowEntry(String);

impl AllowEntry {
    /// The rule or name, as `--allow` takes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PolicyName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl VariableName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FilePattern {
    /// The pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Letters, digits, `.`, `_` and `-`, and nothing that leads elsewhere when it becomes the name of a file.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        && text.len() <= LONGEST
}

impl FromStr for PolicyName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match is_name(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(ValueError::new(
                text,
                "is not the name of a policy",
                "type letters, digits, `.`, `_` and `-`, at most 64, such as `strict`",
            )),
        }
    }
}

impl FromStr for AllowEntry {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const HINT: &str = "type HOST:PORT such as `registry.npmjs.org:443`, or a set such as `npm`";
        // A host without its port looks like the name of a set, but for its dots.
        if is_name(text) && !text.contains('.') {
            return Ok(Self(text.to_owned()));
        }
        match text.parse::<AllowRule>() {
            Ok(rule) => Ok(Self(rule.to_string())),
            Err(error) => Err(ValueError { problem: error.to_string(), hint: HINT.to_owned() }),
        }
    }
}

impl FromStr for VariableName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        match is_name {
            true => Ok(Self(text.to_owned())),
            // What follows a `=` may be a secret that does not belong into a message.
            false => Err(ValueError::new(
                text.split('=').next().unwrap_or_default(),
                "is not the name of a variable",
                "type letters, digits and underscores, such as `API_URL`, and no value",
            )),
        }
    }
}

impl FromStr for FilePattern {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const HINT: &str = "type a pattern such as `*.pem` or `secrets/**`";
        match globset::Glob::new(text) {
            Ok(_) if !text.is_empty() => Ok(Self(text.to_owned())),
            Ok(_) => Err(ValueError::new(text, "is empty", HINT)),
            Err(error) => Err(ValueError::new(text, &format!("is not a pattern: {}", error.kind()), HINT)),
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for AllowEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for FilePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for PolicyName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

written_as_text!(AllowEntry, PolicyName, VariableName, FilePattern);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_variable_is_in_no_message() {
        let error = "TOKEN=hunter2hunter2".parse::<VariableName>().unwrap_err().to_string();
        assert!(error.contains("`TOKEN` is not the name") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_pattern_is_one_that_can_be_compared() {
        for text in ["*.pem", "secrets/**", "{a,b}.key", "[a-z].txt"] {
            assert_eq!(text.parse::<FilePattern>().unwrap().as_str(), text);
        }
        for text in ["", "[a", "{a,b", "a\\"] {
            assert!(text.parse::<FilePattern>().unwrap_err().hint.contains("type a pattern"), "{text}");
        }
    }
}
