//! One line of an allow-list.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::host::{Host, HostError, HostPort, printable};

/// What the forward proxy may connect to: `host:port`, `*.host:port` or `address:port`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AllowRule {
    /// Exactly this.
    Exact(HostPort),
    /// Any name with one or more labels in front of this one, at this port: `*.example.com:443` lists
    /// `a.example.com:443` and `a.b.example.com:443`, neither `example.com:443` nor `badexample.com:443`.
    Below(HostPort),
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The host is none.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A rule without a port would open every service of a machine.
    #[error("`{text}` names no port; write `{written}`")]
    NoPort {
        /// What was given, made printable.
        text: String,
        /// What was probably meant.
        written: String,
    },
    /// A `*` where none may be.
    #[error("`{text}`: {reason}; write `*.example.com:443` for every name below example.com")]
    Wildcard {
        /// What was given, made printable.
        text: String,
        /// What is wrong.
        reason: &'static str,
    },
}

impl AllowRule {
    /// Whether this rule lists this target by name or address.
    #[must_use]
    pub fn lists(&self, target: &HostPort) -> bool {
        match self {
            Self::Exact(listed) => listed == target,
            Self::Below(base) => base.port == target.port && is_below(&target.host, &base.host),
        }
    }
}

/// Label by label: the dot in front of the base is part of what must match.
fn is_below(host: &Host, base: &Host) -> bool {
    match (host, base) {
        (Host::Name(name), Host::Name(base)) => {
            name.strip_suffix(base.as_str()).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
        }
        (Host::Name(_) | Host::Address(_), _) => false,
    }
}

impl FromStr for AllowRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        if let Some(written) = with_port(text) {
            return Err(RuleError::NoPort { text: printable(text), written });
        }
        let wildcard = |reason| RuleError::Wildcard { text: printable(text), reason };
        let Some(base) = text.strip_prefix("*.") else {
            if text.contains('*') {
                return Err(wildcard("a `*` stands only for whole labels in front"));
            }
            return Ok(Self::Exact(text.parse()?));
        };
        if base.contains('*') {
            return Err(wildcard("there is more than one `*`"));
        }
        let base: HostPort = base.parse()?;
        match &base.host {
            Host::Address(_) => Err(wildcard("an address has nothing below it")),
            Host::Name(name) if !name.contains('.') => Err(wildcard("a whole top-level domain is not taken")),
            Host::Name(_) => Ok(Self::Below(base)),
        }
    }
}

/// What to write instead of a rule without a port, if this is one. A URL is a common way to write one.
fn with_port(text: &str) -> Option<String> {
    let (default_port, rest) = match text.split_once("://") {
        Some(("http", rest)) => (80, rest),
        Some((_, rest)) => (443, rest),
        None => (443, text),
    };
    let is_url = rest.len() < text.len();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (front, host) = match authority.strip_prefix("*.") {
        Some(host) => ("*.", host),
        None => ("", authority),
    };
    let target = match host.parse() {
        Ok(host) => HostPort { host, port: default_port },
        Err(_) if is_url => HostPort::parse_with_default(host, default_port).ok()?,
        Err(_) => return None,
    };
    Some(format!("{front}{target}"))
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(target) => target.fmt(f),
            Self::Below(target) => write!(f, "*.{target}"),
        }
    }
}

crate::text::written_as_text!(AllowRule);

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
