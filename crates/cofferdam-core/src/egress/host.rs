//! The one parser of host names. What decides and what dials hold the same parsed value, so that no two
//! readings of one text can differ.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name that DNS can carry, in text.
const MAX_NAME: usize = 253;
/// The longest label that DNS can carry.
const MAX_LABEL: usize = 63;

/// A host in its one canonical form: a lower-case name of plain labels, or an address.
///
/// A name is made of ASCII letters, digits, `-` and `_`. The underscore is no part of an internet host name,
/// but container networks give it to services, and every resolver reads it alike. A name in another script is
/// written as the `xn--…` that goes over the wire: two scripts can look the same on a screen.
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

impl HostPort {
    /// Reads `HOST` or `HOST:PORT`, as it stands in a URL whose scheme has a port of its own.
    ///
    /// # Errors
    /// [`HostError`] says what is wrong with it.
    pub fn parse_with_default(text: &str, default_port: u16) -> Result<Self, HostError> {
        match split_port(text) {
            (host, Some(port)) => Self::from_parts(text, host, port),
            (host, None) => Ok(Self { host: host.parse()?, port: default_port }),
        }
    }

    fn from_parts(text: &str, host: &str, port: &str) -> Result<Self, HostError> {
        // Rust's own number parser takes `+443` and `0443`, which other parsers read differently.
        let canonical = port.bytes().all(|b| b.is_ascii_digit()) && !port.starts_with('0');
        let port = port.parse().ok().filter(|_| canonical);
        let port = port.ok_or_else(|| refuse(text, "the port is a number from 1 to 65535"))?;
        if host.contains(':') && !host.starts_with('[') {
            return Err(refuse(text, "write an IPv6 address in brackets: [::1]:443"));
        }
        Ok(Self { host: host.parse()?, port })
    }
}

impl FromStr for HostPort {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        match split_port(text) {
            (host, Some(port)) => Self::from_parts(text, host, port),
            (_, None) => Err(refuse(text, "write it as HOST:PORT")),
        }
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        if let Some(reason) = forbidden(text) {
            return Err(refuse(text, reason));
        }
        if let Some(inner) = text.strip_prefix('[') {
            let address = inner.strip_suffix(']').and_then(|inner| inner.parse::<Ipv6Addr>().ok());
            let address = address.ok_or_else(|| refuse(text, "brackets hold an IPv6 address"))?;
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        match name_fault(text) {
            Some(reason) => Err(refuse(text, reason)),
            None => Ok(Self::Name(text.to_ascii_lowercase())),
        }
    }
}

/// Splits at the colon before the port. A colon inside brackets is part of an address.
fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// What no host may hold in any form. Each is a way to make two parsers see two hosts in one text.
fn forbidden(text: &str) -> Option<&'static str> {
    let has = |wanted: fn(char) -> bool| text.contains(wanted);
    if text.is_empty() {
        Some("it is empty")
    } else if has(char::is_control) {
        // `attacker\0.allowed.com` ends at the NUL for a C library, and at `.com` for a suffix check.
        Some("it holds a control character")
    } else if has(char::is_whitespace) {
        Some("it holds a space")
    } else if has(|c| c == '@') {
        Some("a user name or password is no part of a host")
    } else if has(|c| c == '%') {
        Some("neither percent-encoding nor a zone id is taken")
    } else if has(|c| c == '\\' || c == '/' || c == '?' || c == '#') {
        Some("write the host alone, without scheme or path")
    } else if has(|c| !c.is_ascii()) {
        Some("write an international name in its `xn--` form")
    } else {
        None
    }
}

fn name_fault(text: &str) -> Option<&'static str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || b == b'.';
    let last = text.rsplit('.').next().unwrap_or_default();
    if !text.bytes().all(plain) {
        Some("only letters, digits, `-`, `_` and `.` make a name")
    } else if text.len() > MAX_NAME {
        Some("a name has at most 253 characters")
    } else if text.ends_with('.') {
        Some("leave out the dot at the end")
    } else if text.split('.').any(str::is_empty) {
        Some("it has an empty label")
    } else if text.split('.').any(|label| label.len() > MAX_LABEL) {
        Some("a label has at most 63 characters")
    } else if text.split('.').any(|label| label.starts_with('-') || label.ends_with('-')) {
        Some("a label starts or ends with `-`")
    } else if is_number(last) {
        Some("it looks like an address; write an IPv4 address as four plain decimal numbers")
    } else {
        None
    }
}

/// Whether a resolver could take a text with this last label for an IPv4 address: `127.1`, `2130706433`,
/// `0177.0.0.1` and `0x7f.1` are all 127.0.0.1 to `inet_aton` and to browsers. No top-level domain is a number.
fn is_number(last_label: &str) -> bool {
    let hexadecimal = last_label.strip_prefix("0x").or_else(|| last_label.strip_prefix("0X"));
    last_label.bytes().all(|b| b.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn refuse(text: &str, reason: &'static str) -> HostError {
    HostError { text: printable(text), reason }
}

/// A text of a stranger, for an error message.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_default).collect()
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

crate::text::written_as_text!(HostPort);

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
