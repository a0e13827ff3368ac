//! What the tools of direct runs may reach: the key `tools`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::egress::{AllowRule, HostPort};
use crate::text::written_as_text;
use crate::value::ValueError;

/// The tools of direct runs (`cofferdam ask`, `POST /execute/sdk`), which work outside of a sandbox's network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSettings {
    /// The tool `WebFetch`.
    pub web_fetch: WebFetchSettings,
    /// Who answers the tool `WebSearch`: `vendor` is the model's own search, which is charged for each use, `off` nobody. An
    /// address is that of a SearxNG that answers in JSON, such as `https://searx.example/search`.
    pub web_search: WebSearch,
}

/// What the tool `WebFetch` may fetch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebFetchSettings {
    /// The only hosts that pages are fetched from, such as `docs.rs:443` or `*.python.org:443`; without it every public one, at
    /// the ports 80 and 443. A run that reads a project fetches from listed hosts alone. An exact address opens one that is not
    /// public.
    pub allow: Vec<AllowRule>,
}

/// Who answers the tool `WebSearch`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum WebSearch {
    /// The model's vendor.
    #[default]
    Vendor,
    /// Nobody.
    Off,
    /// A SearxNG.
    Endpoint(SearchEndpoint),
}

/// The address of a SearxNG, without a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchEndpoint(String);

impl SearchEndpoint {
    /// The address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ToolSettings {
    /// Whether a run may both read a project and fetch pages: a page's text could otherwise have the model carry the
    /// project's source to wherever it says.
    #[must_use]
    pub fn may_fetch_beside_project(&self) -> bool {
        !self.web_fetch.allow.is_empty()
    }
}

impl FromStr for WebSearch {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const HINT: &str = "type `vendor`, `off`, or an address such as `https://searx.example/search`";
        match text {
            "vendor" => return Ok(Self::Vendor),
            "off" => return Ok(Self::Off),
            _ => {}
        }
        let refuse = |problem: &str| Err(ValueError::new(text, problem, HINT));
        let (rest, port) = match text.split_once("://") {
            Some(("https", rest)) => (rest, 443),
            Some(("http", rest)) => (rest, 80),
            Some(_) | None => return refuse("is not known"),
        };
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if let Err(error) = HostPort::parse_with_default(host, port) {
            return refuse(&format!("does not hold a host: {}", error.reason));
        }
        match path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\".contains(&byte)) {
            true => Ok(Self::Endpoint(SearchEndpoint(text.to_owned()))),
            false => refuse("holds more than a host and a path"),
        }
    }
}

impl fmt::Display for WebSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vendor => "vendor",
            Self::Off => "off",
            Self::Endpoint(endpoint) => endpoint.as_str(),
        })
    }
}

written_as_text!(WebSearch);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_the_vendors_nobodys_or_at_an_address() {
        assert_eq!(WebSearch::default(), WebSearch::Vendor);
        for text in
            ["vendor", "off", "https://searx.example/search", "http://10.0.0.7:8888/", "https://s.example"]
        {
            assert_eq!(text.parse::<WebSearch>().unwrap().to_string(), text);
        }
        for text in [
            "on",
            "searx.example",
            "ftp://searx.example",
            "https://me:key@searx.example/search",
            "https://searx.example/search?format=html",
            "https://searx.example/a b",
            "https:///search",
        ] {
            assert!(text.parse::<WebSearch>().is_err(), "{text}");
        }
    }
}
