//! Where the files are kept that runs leave: the key `artifacts`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostPort;
use crate::text::{checked_text, written_as_text};
use crate::value::ValueError;

/// The files that runs leave. The keys of the bucket come from the variables `AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, and from nowhere else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ArtifactSettings {
    /// The bucket, and a prefix in it, such as `s3://artifacts/cofferdam`. Without it they stay in the state folder, which
    /// other nodes cannot read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<ArtifactUrl>,
    /// Where the bucket is, if not at Amazon: `https://storage.example`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<ArtifactEndpoint>,
    /// The bucket's region.
    pub region: ArtifactRegion,
}

/// A bucket, and a prefix in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactUrl {
    bucket: String,
    prefix: String,
}

impl ArtifactUrl {
    /// The bucket.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// What the names of the objects begin with; empty, or without a slash at its end.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl FromStr for ArtifactUrl {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const HINT: &str = "type a bucket and a prefix such as `s3://artifacts/cofferdam`";
        let refuse = |problem: &str| Err(ValueError::new(text, problem, HINT));
        let Some(rest) = text.strip_prefix("s3://") else { return refuse("does not begin with `s3://`") };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(is_name) {
            return refuse("does not name a bucket");
        }
        let is_part = |part: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
            !part.is_empty() && part != "." && part != ".." && part.chars().all(known)
        };
        if !prefix.is_empty() && !prefix.split('/').all(is_part) {
            return refuse("has a prefix that is not made of letters, digits, `-`, `_`, `.` and `=`");
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for ArtifactUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix.is_empty() {
            true => write!(f, "s3://{}", self.bucket),
            false => write!(f, "s3://{}/{}", self.bucket, self.prefix),
        }
    }
}

/// Where a bucket is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactEndpoint {
    text: String,
    is_encrypted: bool,
}

impl ArtifactEndpoint {
    /// Whether what is sent there can be read on the way by nobody.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }
}

impl FromStr for ArtifactEndpoint {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const HINT: &str = "type an address such as `https://storage.example`";
        let refuse = |problem: &str| Err(ValueError::new(text, problem, HINT));
        let (is_encrypted, host) = match text.split_once("://") {
            Some(("https", host)) => (true, host),
            Some(("http", host)) => (false, host),
            Some(_) | None => return refuse("does not begin with `https://`"),
        };
        let host = host.strip_suffix('/').unwrap_or(host);
        let port = if is_encrypted { 443 } else { 80 };
        match HostPort::parse_with_default(host, port) {
            Ok(_) => Ok(Self { text: text.trim_end_matches('/').to_owned(), is_encrypted }),
            Err(error) => refuse(&format!("does not hold a host: {}", error.reason)),
        }
    }
}

impl fmt::Display for ArtifactEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

checked_text! {
    /// A region of a bucket.
    ArtifactRegion: region => ValueError;
}

impl Default for ArtifactRegion {
    fn default() -> Self {
        Self("us-east-1".to_owned())
    }
}

fn region(text: &str) -> Result<String, ValueError> {
    let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_region = (1..=64).contains(&text.len()) && text.chars().all(is_known);
    ValueError::unless(is_region, text, "is not a region", "type one such as `eu-central-1`")
}

written_as_text!(ArtifactUrl, ArtifactEndpoint);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_may_have_a_prefix() {
        for (text, bucket, prefix) in [
            ("s3://artifacts", "artifacts", ""),
            ("s3://artifacts/", "artifacts", ""),
            ("s3://artifacts/a/b", "artifacts", "a/b"),
        ] {
            let url: ArtifactUrl = text.parse().expect(text);
            assert_eq!((url.bucket(), url.prefix()), (bucket, prefix));
            assert_eq!(url.to_string().parse(), Ok(url));
        }
    }

    #[test]
    fn other_places_are_refused_with_what_to_type() {
        for text in [
            "",
            "artifacts",
            "s3://",
            "s3://A",
            "s3://abc/../x",
            "s3://abc//x",
            "https://abc/x",
            "s3://u:p@abc",
        ] {
            let error = text.parse::<ArtifactUrl>().unwrap_err().to_string();
            assert!(error.ends_with("`s3://artifacts/cofferdam`"), "{error}");
        }
        for text in ["", "storage", "ftp://a", "https://", "https://u:p@a", "https://a/b"] {
            let error = text.parse::<ArtifactEndpoint>().unwrap_err().to_string();
            assert!(error.ends_with("`https://storage.example`"), "{error}");
        }
    }
}
