//! Addresses of services on the host's own loopback, as a container has to write them.
//!
//! Inside a container `localhost` is the container. A variable such as `DATABASE_URL` that names a service of
//! the host so is passed with the name that the engine gives the host.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// The variables that are rewritten whatever the settings say.
pub const ALWAYS_REWRITTEN: [&str; 2] = ["DATABASE_URL", "REDIS_URL"];

/// Which variables are rewritten: the setting `sandbox.rewrite_loopback`, `"all"` or a list of names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum RewriteLoopback {
    /// Every one whose value is a URL.
    #[default]
    All,
    /// These, and [`ALWAYS_REWRITTEN`].
    Named(Vec<String>),
}

/// Why a setting says nothing about which variables are meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteLoopbackError {
    /// A word that is not known.
    #[error("`{0}` does not say which variables; type \"all\", or a list of names such as [\"API_URL\"]")]
    Word(String),
    /// A member of the list that no variable is called.
    #[error("`{0}` is not the name of a variable; type letters, digits and underscores, such as \"API_URL\"")]
    Name(String),
}

impl RewriteLoopback {
    /// The value that the variable of this name has inside, if it is another one than outside.
    #[must_use]
    pub fn rewrite(&self, name: &str, value: &str, host: &str) -> Option<String> {
        let is_meant = match self {
            Self::All => true,
            Self::Named(names) => ALWAYS_REWRITTEN.contains(&name) || names.iter().any(|named| named == name),
        };
        is_meant.then(|| rewrite(value, host)).flatten()
    }
}

/// Puts `host` in the place of a URL's loopback host, and leaves every other byte as it is. `None` for what
/// is not a URL with a scheme and `://`, or has another host.
///
/// These are loopback hosts: `localhost` in any case, also with the dot of an absolute name; addresses in
/// 127.0.0.0/8 as four plain decimal numbers; `[::1]` in every way of writing it; and `[::ffff:127.0.0.1]`, which
/// is the same service. In a list of hosts (`postgres://a:1,localhost:2/db`, `mongodb://…`) each is looked at.
///
/// These are left alone:
/// - `127.1`, `0x7f.0.0.1`, `0177.0.0.1`, `2130706433`: whether they are an address, and which, differs from
///   library to library, so that rewriting could turn a name into something else.
/// - `0.0.0.0` and `[::]`, which are addresses to listen at.
/// - `x.localhost`: the name in front says which of several services is meant, and would be lost.
/// - `file:`, which names a file and no service.
/// - Percent-encoded hosts, IPv6 zones, ports that are no numbers, lists of whole URLs, and `jdbc:…`, which is
///   a URL inside of something else: what is not understood for sure is not changed.
#[must_use]
pub fn rewrite(value: &str, host: &str) -> Option<String> {
    let (scheme, rest) = value.split_once("://")?;
    if !is_scheme(scheme) || scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // A password may hold an `@` that should have been encoded; every library ends it at the last one.
    let (userinfo, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let members: Vec<Member<'_>> = hosts.split(',').map(Member::read).collect::<Option<_>>()?;
    // The empty port of `http:` in `http://a:1,http://b:2` tells a list of URLs from a list of hosts.
    let is_list_of_urls = members.len() > 1 && members.iter().any(|member| member.port == ":");
    if is_list_of_urls || !members.iter().any(|member| is_loopback(member.host)) {
        return None;
    }
    let members = members.iter().map(|member| match is_loopback(member.host) {
        true => format!("{host}{}", member.port),
        false => format!("{}{}", member.host, member.port),
    });
    let members = members.collect::<Vec<_>>().join(",");
    Some(format!("{scheme}://{userinfo}{members}{tail}"))
}

/// `ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`, RFC 3986 section 3.1.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// A host with its port.
struct Member<'a> {
    host: &'a str,
    /// With its colon; empty without one.
    port: &'a str,
}

impl<'a> Member<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let host_ends = match text.starts_with('[') {
            true => text.find(']')? + 1,
            false => text.find(':').unwrap_or(text.len()),
        };
        let (host, port) = text.split_at(host_ends);
        let is_port = port
            .strip_prefix(':')
            .map_or(port.is_empty(), |digits| digits.bytes().all(|b| b.is_ascii_digit()));
        is_port.then_some(Self { host, port })
    }
}

fn is_loopback(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    let v6 = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || v6.and_then(|v6| v6.parse::<Ipv6Addr>().ok()).is_some_and(|v6| v6.to_canonical().is_loopback())
}

/// The setting as it is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "type \"all\", or a list of names such as [\"API_URL\"]")]
enum Written {
    Word(String),
    Names(Vec<String>),
}

impl TryFrom<Written> for RewriteLoopback {
    type Error = RewriteLoopbackError;

    fn try_from(written: Written) -> Result<Self, RewriteLoopbackError> {
        match written {
            Written::Word(word) if word == "all" => Ok(Self::All),
            Written::Word(word) => Err(RewriteLoopbackError::Word(word)),
            Written::Names(names) => match names.iter().find(|name| !is_variable(name)) {
                Some(name) => Err(RewriteLoopbackError::Name(name.clone())),
                None => Ok(Self::Named(names)),
            },
        }
    }
}

/// The same names that `--env` takes: another one could not be passed, and is a mistake.
fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl From<RewriteLoopback> for Written {
    fn from(setting: RewriteLoopback) -> Self {
        match setting {
            RewriteLoopback::All => Self::Word("all".to_owned()),
            RewriteLoopback::Named(names) => Self::Names(names),
        }
    }
}

#[cfg(test)]
#[path = "loopback_tests.rs"]
mod tests;
