//! A repository that people register.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::ProjectId;
use crate::run::Source;
use crate::value::ValueError;

/// A repository that people register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its id.
    pub id: ProjectId,
    /// What people call it; no two projects have the same name.
    pub name: ProjectName,
    /// Where its workspaces come from: an address with its default reference, or a path.
    pub source: Source,
    /// How many of its runs may be under way at once; as many as the service allows without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<NonZeroU32>,
}

/// What people call a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProjectName(String);

impl ProjectName {
    const LONGEST: usize = 100;

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProjectName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b));
        // An id is looked for first, so that no name may pass for one.
        if begins && is_plain && text.len() <= Self::LONGEST && text.parse::<ProjectId>().is_err() {
            return Ok(Self(text.to_owned()));
        }
        let hint = "type letters, digits, `.`, `_`, `-` and `/`, such as `acme/shop`";
        Err(ValueError::new(text, "is not a project's name", hint))
    }
}

impl TryFrom<String> for ProjectName {
    type Error = ValueError;

    fn try_from(text: String) -> Result<Self, ValueError> {
        text.parse()
    }
}

impl From<ProjectName> for String {
    fn from(name: ProjectName) -> Self {
        name.0
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_and_is_no_id() {
        assert!("acme/shop-2.0".parse::<ProjectName>().is_ok());
        let id = ProjectId::new(1, 1).to_string();
        for text in ["", "/x", "a b", "ä", id.as_str(), &"x".repeat(101)] {
            assert!(text.parse::<ProjectName>().is_err(), "{text}");
        }
    }
}
