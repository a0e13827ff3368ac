//! One line of an allow-list.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::host::{HostError, HostPort};

/// What the forward proxy may connect to: `host:port`, `*.host:port` or `address:port`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AllowRule {
    /// Exactly this.
    Exact(HostPort),
    /// Any name with exactly one more label in front, at this port.
    Below(HostPort),
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The host is none.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl AllowRule {
    /// Whether this rule lists this target by name or address.
    #[must_use]
    pub fn lists(&self, target: &HostPort) -> bool {
        match self {
            Self::Exact(listed) => listed == target,
            Self::Below(_) => false,
        }
    }
}

impl FromStr for AllowRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        match text.strip_prefix("*.") {
            Some(rest) => Ok(Self::Below(rest.parse()?)),
            None => Ok(Self::Exact(text.parse()?)),
        }
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(target) => target.fmt(f),
            Self::Below(target) => write!(f, "*.{target}"),
        }
    }
}

impl TryFrom<String> for AllowRule {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse()
    }
}

impl From<AllowRule> for String {
    fn from(rule: AllowRule) -> Self {
        rule.to_string()
    }
}
