//! The one parser of host names. What decides and what dials hold the same parsed value, so that no two
//! readings of one text can differ.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A host in its one canonical form: a lower-case name of plain labels, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A DNS name.
    Name(String),
    /// An address; an IPv6 address that only wraps an IPv4 one is that IPv4 address.
    Address(IpAddr),
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPort {
    /// Where.
    pub host: Host,
    /// Never 0.
    pub port: u16,
}

/// Why a text names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a host: {reason}")]
pub struct HostError {
    /// The text, cut and made printable.
    pub text: String,
    /// What is wrong.
    pub reason: &'static str,
}

impl Host {
    fn refuse(text: &str, reason: &'static str) -> HostError {
        HostError { text: text.chars().take(100).flat_map(char::escape_default).collect(), reason }
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
        if text.is_empty() || !text.bytes().all(plain) {
            return Err(Self::refuse(text, "only letters, digits, `-` and `.` make a name"));
        }
        Ok(Self::Name(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for HostPort {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let (host, port) =
            text.rsplit_once(':').ok_or_else(|| Host::refuse(text, "write it as HOST:PORT"))?;
        let port = port
            .parse()
            .ok()
            .filter(|&port: &u16| port != 0)
            .ok_or_else(|| Host::refuse(text, "the port is a number from 1 to 65535"))?;
        let host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(address) => Host::Address(
                address
                    .parse::<std::net::Ipv6Addr>()
                    .map(|address| IpAddr::V6(address).to_canonical())
                    .map_err(|_| Host::refuse(text, "brackets are for IPv6 addresses"))?,
            ),
            None => host.parse()?,
        };
        Ok(Self { host, port })
    }
}

impl TryFrom<String> for HostPort {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        text.parse()
    }
}

impl From<HostPort> for String {
    fn from(it: HostPort) -> Self {
        it.to_string()
    }
}
