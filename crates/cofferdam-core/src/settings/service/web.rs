//! Names and addresses under which the service is called.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::egress::{Host, HostPort};
use crate::text::{checked_text, written_as_text};
use crate::value::ValueError;

/// What may stand in a `Host` header: a name with any port, or with one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowedHost {
    host: Host,
    port: Option<u16>,
}

checked_text! {
    /// Where a web page comes from, as a browser says it in `Origin`: `https://app.example`, in lower case and without the
    /// port that the scheme has anyway.
    WebOrigin: web_origin => ValueError;
    /// The address under which others reach the API, without a slash at the end.
    PublicUrl: public_url => ValueError;
}

impl AllowedHost {
    /// Whether a `Host` header that names this host, and this port if it names one, is answered.
    #[must_use]
    pub fn allows(&self, host: &Host, port: Option<u16>) -> bool {
        self.host == *host && self.port.is_none_or(|own| port == Some(own))
    }
}

impl PublicUrl {
    /// The host that it names, with the scheme's port if it names none.
    #[must_use]
    pub fn host(&self) -> Option<HostPort> {
        let (scheme, rest) = self.0.split_once("://")?;
        HostPort::parse_with_default(rest.split('/').next()?, default_port(scheme)?).ok()
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// `SCHEME://HOST[:PORT]` as browsers write it, and what follows.
fn split(text: &str) -> Option<(String, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let own_port = default_port(&scheme)?;
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let HostPort { host, port } = HostPort::parse_with_default(authority, own_port).ok()?;
    let origin = match port == own_port {
        true => format!("{scheme}://{host}"),
        false => format!("{scheme}://{host}:{port}"),
    };
    Some((origin, path))
}

impl FromStr for AllowedHost {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let with_port = text.parse::<HostPort>().map(|it| Self { host: it.host, port: Some(it.port) });
        with_port.or_else(|_| text.parse::<Host>().map(|host| Self { host, port: None })).map_err(|error| {
            ValueError {
                problem: error.to_string(),
                hint: "type a name such as `cofferdam.example`".to_owned(),
            }
        })
    }
}

fn web_origin(text: &str) -> Result<String, ValueError> {
    let hint = "type scheme and host, such as `https://app.example`; each page is named, `*` is none";
    match split(text) {
        Some((origin, "")) => Ok(origin),
        _ => Err(ValueError::new(text, "is not an origin of web pages", hint)),
    }
}

fn public_url(text: &str) -> Result<String, ValueError> {
    let is_plain = |path: &str| !path.contains(['?', '#', '\\']) && !path.contains(char::is_whitespace);
    let hint = "type an address such as `https://cofferdam.example`";
    match split(text) {
        Some((origin, path)) if is_plain(path) => Ok(format!("{origin}{}", path.trim_end_matches('/'))),
        _ => Err(ValueError::new(text, "is not an address of the API", hint)),
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => self.host.fmt(f),
        }
    }
}

written_as_text!(AllowedHost);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        for (text, origin) in [
            ("https://App.Example", "https://app.example"),
            ("https://app.example:443", "https://app.example"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(text.parse::<WebOrigin>().unwrap().as_str(), origin);
        }
        for text in
            ["*", "null", "app.example", "https://app.example/", "https://a@b", "file://x", "https://*.x"]
        {
            assert!(text.parse::<WebOrigin>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_host_with_a_port_is_no_other_port() {
        let host = |text: &str| text.parse::<Host>().unwrap();
        let any: AllowedHost = "Cofferdam.example".parse().unwrap();
        assert!(
            any.allows(&host("cofferdam.example"), None) && any.allows(&host("cofferdam.example"), Some(81))
        );
        let one: AllowedHost = "cofferdam.example:81".parse().unwrap();
        assert!(one.allows(&host("cofferdam.example"), Some(81)));
        assert!(
            !one.allows(&host("cofferdam.example"), None) && !one.allows(&host("evil.example"), Some(81))
        );
        assert!("*.example".parse::<AllowedHost>().is_err());
    }

    #[test]
    fn a_public_address_has_no_slash_at_its_end() {
        let url: PublicUrl = "HTTPS://Cofferdam.example/api/".parse().unwrap();
        assert_eq!(url.as_str(), "https://cofferdam.example/api");
        assert_eq!(url.host().unwrap().to_string(), "cofferdam.example:443");
        for text in ["cofferdam.example", "ftp://x", "https://x/?a", "https://u:p@x"] {
            assert!(text.parse::<PublicUrl>().is_err(), "{text}");
        }
    }
}
