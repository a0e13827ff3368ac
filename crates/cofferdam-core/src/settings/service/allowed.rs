//! What callers of the service may choose without the scope `system`.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::policy::{Mode, Network};
use crate::repo_url::{LocalUrls, RepoUrl};
use crate::text::{checked_text, written_as_text};
use crate::value::ValueError;

/// A mode that may be chosen: `docker` with a network that is sealed or none, `docker:open` with any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowedMode {
    mode: Mode,
    is_open: bool,
}

/// A folder of this machine below which callers may name paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowedRoot(PathBuf);

checked_text! {
    /// Addresses of repositories: `https://github.com/acme/*`.
    RepoPattern: repo_pattern => ValueError;
}

impl AllowedMode {
    /// Every sandbox, with a network that is sealed or none.
    pub(super) const SEALED: [Self; 3] = [
        Self { mode: Mode::Native, is_open: false },
        Self { mode: Mode::Docker, is_open: false },
        Self { mode: Mode::Apple, is_open: false },
    ];

    /// Whether it allows a mode with a network.
    #[must_use]
    pub fn allows(self, mode: Mode, network: Network) -> bool {
        let is_within = match network {
            Network::Sealed | Network::None => true,
            Network::Open => self.is_open,
        };
        self.mode == mode && is_within
    }

    /// Whether it allows a network, in its own mode.
    #[must_use]
    pub fn allows_network(self, network: Network) -> bool {
        self.allows(self.mode, network)
    }
}

impl AllowedRoot {
    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether a path is the folder or below it. The path is one whose links were followed.
    #[must_use]
    pub fn holds(&self, canonical: &Path) -> bool {
        canonical.starts_with(&self.0)
    }
}

impl RepoPattern {
    /// Whether an address is one of these. An address that can be read in two ways is none.
    #[must_use]
    pub fn matches(&self, url: &RepoUrl) -> bool {
        let address = canonical(url.as_str());
        let is_plain = !address.contains(['%', '?', '#', '\\'])
            && address.split_once("://").is_some_and(|(_, rest)| {
                rest.split('/').all(|part| !matches!(part, "." | "..") && !part.is_empty())
            });
        is_plain && matcher(&self.0).is_some_and(|matcher| matcher.is_match(&address))
    }
}

/// Scheme and host in lower case, git's short form of ssh written out, and neither a slash nor `.git` at the end: what is
/// one repository to a git host is one text here.
fn canonical(address: &str) -> String {
    let long = match address.split_once("://") {
        Some(_) => address.to_owned(),
        None => format!("ssh://{}", address.replacen(':', "/", 1)),
    };
    let (scheme, rest) = long.split_once("://").unwrap_or(("", &long));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    format!("{}://{}/{path}", scheme.to_ascii_lowercase(), authority.to_ascii_lowercase())
}

/// `*` ends at a slash, so that a pattern for one owner, or for one folder of branches, is none for a deeper path.
pub(super) fn matcher(pattern: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(false).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

impl FromStr for AllowedMode {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let refuse = || {
            let hint = "type a mode such as `docker`, or with an open network `docker:open`; without a sandbox it is `host:open`";
            ValueError::new(text, "is not a mode that can be allowed", hint)
        };
        let (mode, is_open) = match text.strip_suffix(":open") {
            Some(mode) => (mode, true),
            None => (text, false),
        };
        let mode: Mode = mode.parse().map_err(|_| refuse())?;
        // Without a sandbox every network is open, and whoever allows that says so.
        match mode.is_sandboxed() || is_open {
            true => Ok(Self { mode, is_open }),
            false => Err(refuse()),
        }
    }
}

impl FromStr for AllowedRoot {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let path: PathBuf = Path::new(text).components().collect();
        let is_plain =
            path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        match path.is_absolute() && is_plain && !text.contains('\0') {
            true => Ok(Self(path)),
            false => {
                Err(ValueError::new(text, "is not an absolute path", "type a folder such as `/srv/repos`"))
            }
        }
    }
}

fn repo_pattern(text: &str) -> Result<String, ValueError> {
    let hint = "type an address such as `https://github.com/acme/*` or `git@github.com:acme/*`";
    let refuse = |problem: &str| ValueError::new(text, problem, hint);
    RepoUrl::parse(text, LocalUrls::Allow).map_err(|_| refuse("is not an address of repositories"))?;
    let pattern = canonical(text);
    let host = pattern.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    // A pattern in the host would also match a host that somebody else has.
    match matcher(&pattern) {
        Some(_) if !host.contains(['*', '?', '[', '{']) => Ok(pattern),
        Some(_) => Err(refuse("has a pattern in the name of its host")),
        None => Err(refuse("is not a pattern")),
    }
}

impl fmt::Display for AllowedMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.mode, if self.is_open { ":open" } else { "" })
    }
}

impl fmt::Display for AllowedRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

written_as_text!(AllowedMode, AllowedRoot);

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, url: &str) -> bool {
        let pattern: RepoPattern = pattern.parse().unwrap();
        pattern.matches(&RepoUrl::parse(url, LocalUrls::Allow).unwrap())
    }

    #[test]
    fn a_mode_is_open_only_where_that_is_said() {
        let docker: AllowedMode = "docker".parse().unwrap();
        assert!(docker.allows(Mode::Docker, Network::Sealed) && !docker.allows(Mode::Docker, Network::Open));
        let open: AllowedMode = "docker:open".parse().unwrap();
        assert!(open.allows(Mode::Docker, Network::Open) && !open.allows(Mode::Native, Network::Open));
        assert!("host".parse::<AllowedMode>().is_err(), "nobody allows that by accident");
        assert!("host:open".parse::<AllowedMode>().unwrap().allows(Mode::Host, Network::Open));
    }

    #[test]
    fn a_pattern_matches_the_repositories_of_one_owner() {
        for url in
            ["https://github.com/acme/app", "HTTPS://GitHub.com/acme/app.git", "https://github.com/acme/app/"]
        {
            assert!(matches("https://github.com/acme/*", url), "{url}");
        }
        for url in [
            "https://github.com/evil/app",
            "https://github.com/acme/../evil/app",
            "https://github.com/acme/%2e%2e/evil",
            "https://github.com/acme//app",
            "https://github.com/acme/app/deeper",
            "https://github.com/acme",
            "https://github.com.evil.example/acme/app",
            "ssh://github.com/acme/app",
        ] {
            assert!(!matches("https://github.com/acme/*", url), "{url}");
        }
        assert!(matches("https://git.example/**", "https://git.example/a/b/c"));
    }

    #[test]
    fn the_short_form_of_ssh_is_the_long_one() {
        assert!(matches("git@github.com:acme/*", "ssh://git@github.com/acme/app.git"));
        assert!(matches("ssh://git@github.com/acme/*", "git@github.com:acme/app"));
    }

    #[test]
    fn a_host_is_no_pattern() {
        for text in ["https://*.example/acme/*", "https://{a,b}.example/x", "*"] {
            assert!(text.parse::<RepoPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_root_holds_what_is_below_it_and_not_what_begins_alike() {
        let root: AllowedRoot = "/srv/repos/".parse().unwrap();
        assert!(root.holds(Path::new("/srv/repos")) && root.holds(Path::new("/srv/repos/a/b")));
        assert!(!root.holds(Path::new("/srv/repos-of-others/a")) && !root.holds(Path::new("/srv")));
        for text in ["", "repos", "~/repos", "/srv/../etc"] {
            assert!(text.parse::<AllowedRoot>().is_err(), "{text}");
        }
    }
}
