//! Git hosts, and which token belongs to which: the key `git`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::VariableName;
use crate::egress::HostPort;
use crate::repo_url::RepoUrl;
use crate::text::{checked_text, written_as_text};
use crate::value::ValueError;

/// The port of `https://`.
const HTTPS_PORT: u16 = 443;

/// How the names of variables with tokens end. What such a variable holds is taken out of everything that is recorded.
const TOKEN_ENDINGS: [&str; 4] = ["_TOKEN", "_PAT", "_PASSWORD", "_SECRET"];

/// Git hosts, and what opens them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GitSettings {
    /// Which token opens which repositories, the first that fits. `host` is a name, with a port if it is not 443; `path` keeps it
    /// to the repositories at or below a path; `token_env` is the variable that holds the token. They go before
    /// `COFFERDAM_GIT_TOKEN`, `GITHUB_TOKEN`, `GH_TOKEN` and `GITLAB_TOKEN`, and also count for a local repository's `origin`.
    pub credentials: Vec<GitCredentialSettings>,
}

/// A token, and the repositories that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitCredentialSettings {
    /// The host, with a port if it is not 443.
    pub host: GitHost,
    /// The path that the repositories are at or below; without it every repository of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<GitPath>,
    /// The variable that holds the token.
    pub token_env: TokenVariable,
}

/// A git host: `git.example.com`, or `git.example.com:8443`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GitHost(HostPort);

checked_text! {
    /// A path at a git host, without slashes around it and without `.git`: `team`, or `team/app`.
    GitPath: git_path => ValueError;
}

/// The name of a variable that holds a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenVariable(VariableName);

/// The repositories that a token is for: those of a host, or of a path there. Written as `git.example.com/team`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitScope {
    /// The host.
    pub host: GitHost,
    /// The path; without it every repository of the host.
    pub path: Option<GitPath>,
}

impl GitScope {
    /// Whether a repository is among them: at this host over https, and at or below this path as whole segments. A path that
    /// a host could read in another way (`..`, `%2e`) is below none.
    #[must_use]
    pub fn holds(&self, url: &RepoUrl) -> bool {
        if url.https_host().as_ref() != Some(&self.host.0) {
            return false;
        }
        let Some(wanted) = &self.path else { return true };
        let rest = url.as_str().split_once("://").map_or("", |(_, rest)| rest);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain = !path.starts_with('/') && !authority.contains(['?', '#']);
        let Ok(path) = path.parse::<GitPath>() else { return false };
        is_plain
            && path.0.strip_prefix(&wanted.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl GitCredentialSettings {
    /// The repositories that it is for.
    #[must_use]
    pub fn scope(&self) -> GitScope {
        GitScope { host: self.host.clone(), path: self.path.clone() }
    }
}

impl TokenVariable {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for GitHost {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let host = HostPort::parse_with_default(text, HTTPS_PORT);
        host.map(Self).map_err(|error| ValueError {
            problem: error.to_string(),
            hint: "type a name such as `git.example.com`, or `git.example.com:8443`".to_owned(),
        })
    }
}

fn git_path(text: &str) -> Result<String, ValueError> {
    let path = text.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_plain = |part: &str| {
        let visible = part.bytes().all(|b| b.is_ascii_graphic() && !b"%?#\\".contains(&b));
        visible && !matches!(part, "" | "." | "..")
    };
    match path.split('/').all(is_plain) {
        true => Ok(path.to_owned()),
        false => Err(ValueError::new(
            text,
            "is not a path of repositories",
            "type one such as `team` or `team/app`, with no `%`, `?`, `#`, `.` or `..` in it",
        )),
    }
}

impl FromStr for TokenVariable {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let name: VariableName = text.parse()?;
        match TOKEN_ENDINGS.iter().any(|ending| text.to_ascii_uppercase().ends_with(ending)) {
            true => Ok(Self(name)),
            false => Err(ValueError::new(
                text,
                "does not end like the name of a secret, so that its value would not be redacted",
                "type a name that ends in `_TOKEN`, `_PAT`, `_PASSWORD` or `_SECRET`",
            )),
        }
    }
}

impl FromStr for GitScope {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (host, path) = match text.split_once('/') {
            Some((host, path)) if !path.is_empty() => (host, Some(path.parse()?)),
            Some((host, _)) => (host, None),
            None => (text, None),
        };
        Ok(Self { host: host.parse()?, path })
    }
}

impl fmt::Display for GitHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.port {
            HTTPS_PORT => self.0.host.fmt(f),
            _ => self.0.fmt(f),
        }
    }
}

impl fmt::Display for TokenVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

written_as_text!(GitHost, TokenVariable);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo_url::LocalUrls;

    fn holds(scope: &str, url: &str) -> bool {
        let url = RepoUrl::parse(url, LocalUrls::Allow).unwrap();
        scope.parse::<GitScope>().unwrap().holds(&url)
    }

    #[test]
    fn a_token_is_for_its_host_at_its_port() {
        for url in ["https://git.example/a", "HTTPS://GIT.example:443/a/../b", "https://git.example/%61"] {
            assert!(holds("git.example", url) && holds("git.example:443/", url), "{url}");
        }
        for url in [
            "https://git.example:8443/a",
            "https://git.example.evil/a",
            "https://x.git.example/a",
            "ssh://git@git.example/a",
            "git@git.example:a",
            "git://git.example/a",
            "file:///git.example/a",
        ] {
            assert!(!holds("git.example", url), "{url}");
        }
        assert!(holds("git.example:8443", "https://git.example:8443/a"));
        assert!(holds("[::1]:8443", "https://[::1]:8443/a"));
    }

    #[test]
    fn a_path_holds_whole_segments_and_nothing_that_can_be_read_in_two_ways() {
        for url in
            ["https://h/team/app", "https://h/team/app.git", "https://h/team/app/", "https://h/team/app/x"]
        {
            assert!(
                holds("h/team/app", url) && holds("h/team", url) && holds("h/team/app.git", url),
                "{url}"
            );
        }
        for url in [
            "https://h/team",
            "https://h/team/apple",
            "https://h/team/app-2.git",
            "https://h/other/team/app",
            "https://h/Team/app",
            "https://h/team/app/../../other",
            "https://h/team/app/%2e%2e/other",
            "https://h//team/app",
            "https://h/team//app",
            "https://h/team/app?x",
            "https://h/team/app#x",
            "https://h/team\\app",
            "https://h",
            "https://h?/team/app",
            "https://h#/team/app",
        ] {
            assert!(!holds("h/team/app", url), "{url}");
        }
    }

    #[test]
    fn what_is_no_host_or_path_is_refused_with_what_to_type() {
        for text in
            ["https://git.example", "git.example:0", "*.example", "", "git.example/../x", "h/a//b", "h/%61"]
        {
            let error = text.parse::<GitScope>().unwrap_err();
            assert!(error.hint.starts_with("type "), "{text}: {error}");
        }
        for text in ["TOKENS", "A B_TOKEN", "EDITOR", ""] {
            assert!(text.parse::<TokenVariable>().is_err(), "{text}");
        }
        for text in ["ACME_TOKEN", "gitea_pat"] {
            assert_eq!(text.parse::<TokenVariable>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_list_of_credentials_is_read_and_a_misspelt_key_is_an_error() {
        let read = |text: &str| serde_json::from_str::<GitSettings>(text);
        let found =
            read(r#"{"credentials": [{"host": "h:8443", "path": "/team/", "token_env": "A_TOKEN"}]}"#)
                .unwrap();
        let written = serde_json::to_string(&found).unwrap();
        assert_eq!(written, r#"{"credentials":[{"host":"h:8443","path":"team","token_env":"A_TOKEN"}]}"#);
        assert!(read(r#"{"credentials": [{"host": "h", "paht": "a", "token_env": "A_TOKEN"}]}"#).is_err());
        assert!(read(r#"{"credentials": [{"host": "h"}]}"#).is_err());
    }
}
