//! What people call a node.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::settings::is_name;
use crate::value::ValueError;

/// What people call a node: `main`. A node that is started again under its name goes on with its own runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(String);

impl NodeName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for NodeName {
    fn default() -> Self {
        Self("main".to_owned())
    }
}

impl FromStr for NodeName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match is_name(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(ValueError::new(
                text,
                "is not the name of a node",
                "type letters, digits, `.`, `_` and `-`, at most 64, such as `main`",
            )),
        }
    }
}

impl TryFrom<String> for NodeName {
    type Error = ValueError;

    fn try_from(text: String) -> Result<Self, ValueError> {
        text.parse()
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> Self {
        name.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        assert_eq!("n-2.eu_west".parse::<NodeName>().unwrap().as_str(), "n-2.eu_west");
        for text in ["", ".", "..", "a/b", "-x", "a b", &"a".repeat(65)] {
            assert!(text.parse::<NodeName>().is_err(), "{text}");
        }
        assert_eq!(NodeName::default().as_str().parse(), Ok(NodeName::default()));
    }
}
