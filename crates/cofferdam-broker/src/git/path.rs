//! Which paths are served: three operations of one repository, compared as text. Nothing is decoded and no dot
//! is resolved, so no two spellings meet.

use cofferdam_core::{HostPort, RepoUrl, gateway};
use http::{Method, Uri};

/// The port of `https://`.
const HTTPS_PORT: u16 = 443;

/// The longest path of a repository.
const MAX_PATH: usize = 2048;

/// Where the repository is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    pub(super) host: HostPort,
    /// As it was written, without a slash at its end: `/owner/name.git`.
    pub(super) path: String,
}

/// What a client asks of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// `GET …/info/refs?service=git-upload-pack`.
    AdvertiseFetch,
    /// `POST …/git-upload-pack`.
    Fetch,
    /// `GET …/info/refs?service=git-receive-pack`.
    AdvertisePush,
    /// `POST …/git-receive-pack`.
    Push,
}

impl Operation {
    const ALL: [Self; 4] = [Self::AdvertiseFetch, Self::Fetch, Self::AdvertisePush, Self::Push];

    /// What is added to the repository's address.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::AdvertiseFetch => "/info/refs?service=git-upload-pack",
            Self::Fetch => "/git-upload-pack",
            Self::AdvertisePush => "/info/refs?service=git-receive-pack",
            Self::Push => "/git-receive-pack",
        }
    }

    fn method(self) -> Method {
        match self {
            Self::AdvertiseFetch | Self::AdvertisePush => Method::GET,
            Self::Fetch | Self::Push => Method::POST,
        }
    }
}

impl Repository {
    /// Reads the address of a repository.
    pub(super) fn parse(url: &RepoUrl) -> Result<Self, String> {
        let text = url.as_str();
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => rest,
            _ => return Err("only https addresses are".to_owned()),
        };
        let (authority, path) = rest.split_once('/').ok_or("it names no repository")?;
        let host = HostPort::parse_with_default(authority, HTTPS_PORT).map_err(|error| error.to_string())?;
        let path = format!("/{}", path.trim_end_matches('/'));
        let plain = |segment: &str| !segment.is_empty() && segment != "." && segment != "..";
        let visible = path.bytes().all(|b| b.is_ascii_graphic() && !b"?#\\\"<>^`{|}".contains(&b));
        if !visible || path.len() > MAX_PATH || !path[1..].split('/').all(plain) {
            return Err("its path has to be short and made of plain, non-empty segments".to_owned());
        }
        Ok(Self { host, path })
    }

    /// What a request asks of this repository, if it is a request for it.
    pub(super) fn operation(&self, method: &Method, uri: &Uri) -> Option<Operation> {
        let asked = uri.path_and_query()?.as_str();
        let asked = asked.strip_prefix(gateway::GIT)?.strip_prefix('/')?;
        let (authority, _) = asked.split_once('/')?;
        if HostPort::parse_with_default(authority, HTTPS_PORT).ok()? != self.host {
            return None;
        }
        let rest = asked[authority.len()..].strip_prefix(bare(&self.path))?;
        let rest = rest.strip_prefix(".git").unwrap_or(rest);
        Operation::ALL
            .into_iter()
            .find(|operation| operation.method() == *method && operation.suffix() == rest)
    }
}

/// A repository answers with and without `.git`.
fn bare(path: &str) -> &str {
    path.strip_suffix(".git").unwrap_or(path)
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
