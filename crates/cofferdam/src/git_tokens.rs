//! Which of the caller's tokens opens which repository. A token belongs to the hosts that somebody named for it, and goes
//! nowhere else.
//!
//! The attack: whoever chooses the address of a repository (a caller of the service, the `origin` of a repository that was
//! downloaded) would otherwise choose who gets the token, or what is opened with it.

use std::path::{Path, PathBuf};
use std::sync::Once;

use cofferdam_broker::{GitCredential, GitRepository, NoGitCredential};
use cofferdam_core::{GitScope, GitSettings};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::settings::TrustRecord;
use crate::terminal;

const TOKEN: &str = "COFFERDAM_GIT_TOKEN";
const HOST: &str = "COFFERDAM_GIT_HOST";

/// The caller's tokens for git hosts.
#[derive(Clone, Default)]
pub(crate) struct GitTokens {
    /// The first that fits counts.
    tokens: Vec<Token>,
    /// Where the trusted repositories are written down.
    state: Option<PathBuf>,
}

#[derive(Clone)]
struct Token {
    scope: GitScope,
    source: Source,
    credential: GitCredential,
}

/// Who bound a token to its host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The caller did, in `git.credentials`: also for an `origin`.
    Settings,
    /// A variable that belongs to a host.
    Variable,
}

impl GitTokens {
    /// The tokens in the caller's variables, bound by these settings. `state` is the folder with the record of what is trusted.
    pub(crate) fn of(caller: &Caller, settings: &GitSettings, state: Option<&Path>) -> Result<Self, Failure> {
        let var = |name: &str| {
            let value = caller.var(name).and_then(|value| value.to_str()).map(str::to_owned);
            value.filter(|value| !value.is_empty())
        };
        let mut tokens = Vec::new();
        for set in &settings.credentials {
            let name = set.token_env.as_str();
            if let Some(token) = var(name) {
                let credential = GitCredential { user: user_for(name).to_owned(), token };
                tokens.push(Token { scope: set.scope(), source: Source::Settings, credential });
            }
        }
        let mut add = |scope: GitScope, name: &str, token: Option<String>| {
            if let Some(token) = token {
                let credential = GitCredential { user: user_for(name).to_owned(), token };
                tokens.push(Token { scope, source: Source::Variable, credential });
            }
        };
        match (var(TOKEN), var(HOST)) {
            (token, Some(host)) => add(host_named(&host)?, TOKEN, token),
            (Some(_), None) if settings.credentials.iter().all(|set| set.token_env.as_str() != TOKEN) => {
                warn_unbound();
            }
            (_, None) => {}
        }
        let own = |host: &str| host.parse::<GitScope>().expect("a plain name of a host");
        add(own("github.com"), "GITHUB_TOKEN", var("GH_TOKEN").or_else(|| var("GITHUB_TOKEN")));
        add(own("gitlab.com"), "GITLAB_TOKEN", var("GITLAB_TOKEN"));
        Ok(Self { tokens, state: state.map(Path::to_owned) })
    }

    /// What opens a repository.
    pub(crate) fn find(&self, repository: &GitRepository<'_>) -> Result<GitCredential, NoGitCredential> {
        let fitting = || self.tokens.iter().filter(|token| token.scope.holds(repository.url));
        let named = fitting().find(|token| match repository.origin_of {
            None => true,
            Some(root) => token.source == Source::Settings || self.trusts(root, repository),
        });
        match named {
            Some(token) => Ok(token.credential.clone()),
            None if fitting().next().is_some() => Err(NoGitCredential::Unnamed),
            None => Err(NoGitCredential::NoToken),
        }
    }

    /// Whether the caller trusted a repository while its `origin` was this one. A record that cannot be read trusts nothing.
    fn trusts(&self, root: &Path, repository: &GitRepository<'_>) -> bool {
        TrustRecord::read(self.state.as_deref())
            .is_ok_and(|record| record.trusts_origin(root, repository.url))
    }
}

/// GitLab knows its tokens by this name, most others take any.
fn user_for(variable: &str) -> &'static str {
    if variable == "GITLAB_TOKEN" { "oauth2" } else { "x-access-token" }
}

fn host_named(text: &str) -> Result<GitScope, Failure> {
    text.parse().map_err(|error| {
        Failure::new(ExitCode::Refused, format!("the variable {HOST} cannot be used: {error}")).hint(format!(
            "export {HOST}=git.example.com, or with the path of your repositories: git.example.com/team"
        ))
    })
}

fn warn_unbound() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        terminal::write_stderr(&format!(
            "cofferdam: WARNING: {TOKEN} is not used, because no host is named that it is for\n\
             cofferdam: WARNING: export {HOST}=git.example.com, or list it in `git.credentials` of your settings\n"
        ));
    });
}

#[cfg(test)]
#[path = "git_tokens_tests.rs"]
mod tests;
