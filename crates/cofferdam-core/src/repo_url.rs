//! Addresses that a repository may be fetched from.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Host, HostPort};

/// Whether an address may name a place on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalUrls {
    /// `file://` is allowed: the caller sits at this machine.
    Allow,
    /// It is not: the caller could read other people's repositories with it.
    Refuse,
}

/// An address that is safe to hand to git: of an allowed scheme, and nothing that git would take for an
/// option or a remote helper.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoUrl(String);

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RepoUrlError {
    /// Git would read it as an option.
    #[error("repository address `{0}` starts with `-`, which git would read as an option")]
    Option(String),
    /// `ext::`, `fd::` and their like run programs.
    #[error("repository address `{0}` names a remote helper, which could run any program")]
    Helper(String),
    /// Not one of ours.
    #[error("repository address `{url}` has the scheme `{scheme}` (use https, ssh or git)")]
    Scheme {
        /// The address.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// A place on this machine where that is not allowed.
    #[error("repository address `{0}` is on this machine, which is not allowed here")]
    Local(String),
    /// A password or token, which would end up in the store, in `ps` and in error messages.
    #[error("the repository address for host `{host}` holds a password or token")]
    Credentials {
        /// Where it would have been sent.
        host: String,
    },
    /// Control characters, an empty host, or no scheme at all.
    #[error("`{0}` is not a repository address (use https://host/path, ssh://host/path or git@host:path)")]
    Malformed(String),
}

impl RepoUrl {
    /// Checks an address.
    ///
    /// # Errors
    /// [`RepoUrlError`] says what is wrong with it.
    pub fn parse(text: &str, local: LocalUrls) -> Result<Self, RepoUrlError> {
        let own = || text.to_owned();
        if text.starts_with('-') {
            return Err(RepoUrlError::Option(own()));
        }
        if let Some((helper, _)) = text.split_once("::")
            && helper.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
        {
            return Err(RepoUrlError::Helper(own()));
        }
        if text.is_empty() || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(RepoUrlError::Malformed(own()));
        }
        match text.split_once("://") {
            Some((scheme, rest)) => Self::check_scheme(text, &scheme.to_ascii_lowercase(), rest, local)?,
            None => Self::check_scp(text)?,
        }
        Ok(Self(own()))
    }

    fn check_scheme(text: &str, scheme: &str, rest: &str, local: LocalUrls) -> Result<(), RepoUrlError> {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        match scheme {
            "https" | "ssh" | "git" => Self::check_authority(text, scheme, authority),
            "file" if !authority.is_empty() => Err(RepoUrlError::Malformed(text.to_owned())),
            "file" if local == LocalUrls::Refuse => Err(RepoUrlError::Local(text.to_owned())),
            "file" => Ok(()),
            _ => Err(RepoUrlError::Scheme { url: text.to_owned(), scheme: scheme.to_owned() }),
        }
    }

    /// `user@host:path`, git's short form of ssh.
    fn check_scp(text: &str) -> Result<(), RepoUrlError> {
        match text.split_once(':') {
            Some((authority, path))
                if !authority.contains('/') && !path.is_empty() && !path.starts_with('-') =>
            {
                Self::check_authority(text, "ssh", authority)
            }
            _ => Err(RepoUrlError::Malformed(text.to_owned())),
        }
    }

    /// The host becomes an argument of `ssh`; one that starts with `-` was a code execution in git.
    fn check_authority(text: &str, scheme: &str, authority: &str) -> Result<(), RepoUrlError> {
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        if host.is_empty() || host.starts_with('-') || user.starts_with('-') {
            return Err(RepoUrlError::Malformed(text.to_owned()));
        }
        // Over ssh the user name is part of the address; over https it is a token as often as not.
        if user.contains(':') || (scheme != "ssh" && !user.is_empty()) {
            return Err(RepoUrlError::Credentials { host: host.to_owned() });
        }
        Ok(())
    }

    /// The `file://` address of a folder. Git decodes percent signs in addresses, so every unusual byte of a path can be
    /// written.
    #[must_use]
    pub fn of_folder(path: &Path) -> Self {
        let mut url = "file://".to_owned();
        for &byte in path.as_os_str().as_bytes() {
            if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
                url.push(char::from(byte));
            } else {
                url.push_str(&format!("%{byte:02X}"));
            }
        }
        Self(url)
    }

    /// The folder that [`Self::of_folder`] wrote this address of; `None` for every other address, also for a `file://` one that
    /// is written in another way and could be read in two.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let mut rest = self.0.strip_prefix("file://")?.as_bytes();
        let mut path = Vec::with_capacity(rest.len());
        loop {
            rest = match rest {
                [] => break,
                [b'%', high, low, rest @ ..] => {
                    let digits = [*high, *low];
                    path.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
                    rest
                }
                [byte, rest @ ..] => {
                    path.push(*byte);
                    rest
                }
            };
        }
        let path = PathBuf::from(OsString::from_vec(path));
        (Self::of_folder(&path) == *self).then_some(path)
    }

    /// The host that it is fetched from; `None` for one on this machine.
    #[must_use]
    pub fn host(&self) -> Option<Host> {
        let authority = match self.0.split_once("://") {
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => return None,
            Some((_, rest)) => rest.split(['/', '?', '#']).next()?,
            None => self.0.split_once(':')?.0,
        };
        let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        HostPort::parse_with_default(host, 1).ok().map(|HostPort { host, .. }| host)
    }

    /// The host of an https address, which a token may be meant for. `None` for every other scheme.
    #[must_use]
    pub fn https_host(&self) -> Option<HostPort> {
        let (scheme, rest) = self.0.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let is_https = scheme.eq_ignore_ascii_case("https");
        is_https.then(|| HostPort::parse_with_default(authority, 443).ok()).flatten()
    }

    /// The address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RepoUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for RepoUrl {
    type Error = RepoUrlError;

    /// A stored address was checked when the run was accepted; what was allowed then stays allowed.
    fn try_from(text: String) -> Result<Self, RepoUrlError> {
        Self::parse(&text, LocalUrls::Allow)
    }
}

impl From<RepoUrl> for String {
    fn from(url: RepoUrl) -> String {
        url.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_found_in_every_form() {
        for (text, host) in [
            ("https://Git.example:8443/a", Some("git.example")),
            ("ssh://me@git.example/a", Some("git.example")),
            ("git@127.0.0.1:a/b", Some("127.0.0.1")),
            ("git://[::1]/a", Some("::1")),
            ("file:///srv/a", None),
        ] {
            let found = RepoUrl::parse(text, LocalUrls::Allow).unwrap().host();
            let expected = host.map(|host| match host.parse() {
                Ok(address) => Host::Address(address),
                Err(_) => Host::Name(host.to_owned()),
            });
            assert_eq!(found, expected, "{text}");
        }
        let folder = RepoUrl::of_folder(Path::new("/srv/a b%"));
        assert_eq!(folder.as_str(), "file:///srv/a%20b%25");
        assert_eq!(RepoUrl::parse(folder.as_str(), LocalUrls::Allow).as_ref(), Ok(&folder));
    }

    #[test]
    fn addresses_that_run_programs_or_read_as_options_are_refused() {
        for text in ["ext::sh -c id", "ext::sh", "fd::7", "--upload-pack=id", "-oProxyCommand=id", "a::b"] {
            assert!(RepoUrl::parse(text, LocalUrls::Allow).is_err(), "{text}");
        }
        for text in ["ssh://-oProxyCommand=id/x", "git@-oProxyCommand=id:x", "ssh://u@-o/x", "https:///x"] {
            assert!(
                matches!(RepoUrl::parse(text, LocalUrls::Allow), Err(RepoUrlError::Malformed(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn a_place_on_this_machine_needs_a_local_caller() {
        let text = "file:///srv/git/x.git";
        assert!(RepoUrl::parse(text, LocalUrls::Allow).is_ok());
        assert_eq!(RepoUrl::parse(text, LocalUrls::Refuse), Err(RepoUrlError::Local(text.to_owned())));
        assert!(RepoUrl::parse("file://other/srv/x", LocalUrls::Allow).is_err());
    }

    #[test]
    fn the_address_of_a_folder_leads_back_to_it_and_no_other_address_does() {
        for path in ["/srv/a", "/srv/a b/%41/ü", "/"] {
            assert_eq!(RepoUrl::of_folder(Path::new(path)).folder().as_deref(), Some(Path::new(path)));
        }
        for text in [
            "https://host/a",
            "git@host:a",
            "FILE:///srv/a",
            "file:///srv/%61",
            "file:///a?b",
            "file:///%",
            "file:///%+1",
        ] {
            assert_eq!(RepoUrl::parse(text, LocalUrls::Allow).unwrap().folder(), None, "{text}");
        }
    }

    #[test]
    fn only_an_https_address_has_a_host_that_a_token_is_for() {
        let host = |text| RepoUrl::parse(text, LocalUrls::Allow).unwrap().https_host().map(|h| h.to_string());
        assert_eq!(host("HTTPS://Host.example/a/b").as_deref(), Some("host.example:443"));
        assert_eq!(host("https://host.example:8443/a").as_deref(), Some("host.example:8443"));
        for text in ["ssh://git@host/a", "git@host:a", "git://host/a", "file:///srv/a"] {
            assert_eq!(host(text), None, "{text}");
        }
    }

    #[test]
    fn the_usual_addresses_pass() {
        for text in
            ["https://host/a/b.git", "ssh://git@host:22/a", "git://host/a", "git@host:a/b.git", "HTTPS://h/x"]
        {
            assert!(RepoUrl::parse(text, LocalUrls::Refuse).is_ok(), "{text}");
        }
        for text in ["http://host/a", "ftp://host/a", "/srv/x", "host", "a b:c"] {
            assert!(RepoUrl::parse(text, LocalUrls::Refuse).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_refused_without_repeating_it() {
        for text in ["https://me:hunter2@host/a", "https://hunter2@host/a", "ssh://me:hunter2@host/a"] {
            let error = RepoUrl::parse(text, LocalUrls::Refuse).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
