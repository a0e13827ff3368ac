//! Where a workspace comes from: an address, `owner/name`, or a path.

use std::path::{Path, PathBuf};

use cofferdam_api::ErrorCode;
use cofferdam_core::{Host, LocalUrls, Project, RepoUrl, Source, git_reference, is_public};
use serde_json::json;

use super::allowed;
use crate::access::Caller;
use crate::app::App;
use crate::errors::ApiError;

/// A source that was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// The source.
    pub(crate) source: Source,
    /// Whether it is on this machine, so that only its nodes can work on it.
    pub(crate) is_here: bool,
}

/// The longest address or path.
const LONGEST: usize = 2_000;
const HINT: &str = "write an address such as `https://github.com/owner/repo`, or `owner/repo`";

/// An empty workspace, which has nothing to start from.
pub(super) fn nothing(reference: Option<&str>) -> Result<Found, ApiError> {
    match reference {
        Some(_) => Err(ApiError::invalid_field("ref", "there is no repository", "name one with `repo`")),
        None => Ok(Found { source: Source::Empty, is_here: false }),
    }
}

/// Finds what `repo` names, if this caller may name it.
pub(crate) async fn find_source(
    app: &App,
    caller: &Caller,
    repo: &str,
    reference: Option<&str>,
) -> Result<Found, ApiError> {
    let reference = reference.map(git_reference).transpose();
    let reference = reference.map_err(|error| ApiError::invalid("ref", &error))?;
    if repo.chars().count() > LONGEST {
        return Err(ApiError::new(ErrorCode::InvalidRepoFormat, "repo: it is too long")
            .with(json!({ "field": "repo", "hint": HINT })));
    }
    if repo.starts_with('/') {
        let root = local_root(app, caller, repo).await?;
        return Ok(Found { source: here(root, reference), is_here: true });
    }
    let url = address(repo)?;
    if !caller.may_exceed() {
        check_address(app, &url)?;
    }
    Ok(Found { source: Source::Git { url, reference }, is_here: false })
}

/// The source of a project, from its own reference or from another.
pub(super) fn of_project(project: &Project, reference: Option<&str>) -> Result<Found, ApiError> {
    let reference = reference.map(git_reference).transpose();
    let reference = reference.map_err(|error| ApiError::invalid("ref", &error))?;
    Ok(match (project.source.clone(), reference) {
        (Source::Empty, _) => Found { source: Source::Empty, is_here: false },
        (Source::Local { path }, reference) => Found { source: here(path, reference), is_here: true },
        (Source::Git { url, reference: own }, reference) => {
            let is_here = url.host().is_none();
            Found { source: Source::Git { url, reference: reference.or(own) }, is_here }
        }
    })
}

/// A repository of this machine: as it is now, or one of its commits.
fn here(path: PathBuf, reference: Option<String>) -> Source {
    match reference {
        None => Source::Local { path },
        Some(_) => Source::Git { url: RepoUrl::of_folder(&path), reference },
    }
}

fn address(repo: &str) -> Result<RepoUrl, ApiError> {
    let refuse = |problem: &str| {
        ApiError::new(ErrorCode::InvalidRepoFormat, format!("repo: {problem}"))
            .with(json!({ "field": "repo", "hint": HINT }))
    };
    let text = match is_short(repo) {
        true => format!("https://github.com/{repo}"),
        false => repo.to_owned(),
    };
    RepoUrl::parse(&text, LocalUrls::Refuse).map_err(|error| refuse(&error.to_string()))
}

/// `owner/name`, as GitHub allows them.
fn is_short(repo: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    repo.split_once('/').is_some_and(|(owner, name)| plain(owner) && plain(name))
}

/// The operator's list, or without one whatever is not on this machine or in its own network: a caller could otherwise
/// make the node fetch what only the node can reach.
fn check_address(app: &App, url: &RepoUrl) -> Result<(), ApiError> {
    let is_allowed = match &app.settings().settings.service.allowed_repos {
        Some(patterns) => patterns.iter().any(|pattern| pattern.matches(url)),
        None => match url.host() {
            Some(Host::Address(address)) => is_public(address),
            Some(Host::Name(name)) => name != "localhost" && !name.ends_with(".localhost"),
            None => false,
        },
    };
    match is_allowed {
        true => Ok(()),
        false => Err(allowed::refuse(
            "repo",
            "this address is not allowed to this key",
            "add it to service.allowed_repos, or use a key with the scope `system`",
        )),
    }
}

/// The root of the repository at a path. Whoever may not name the path learns nothing about it.
async fn local_root(app: &App, caller: &Caller, repo: &str) -> Result<PathBuf, ApiError> {
    let refused = || {
        allowed::refuse(
            "repo",
            "this path is not allowed to this key",
            "add a folder above it to service.allowed_roots, or use a key with the scope `system`",
        )
    };
    let found = match repo.contains('\0') {
        true => None,
        false => tokio::fs::canonicalize(repo).await.ok(),
    };
    let Some(found) = found else {
        return Err(match caller.may_exceed() || allowed::path(app, caller, Path::new(repo)) {
            true => allowed::not_there("repo", "there is no such folder"),
            false => refused(),
        });
    };
    if !allowed::path(app, caller, &found) {
        return Err(refused());
    }
    let is_root = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let root = found
        .ancestors()
        .find(is_root)
        .ok_or_else(|| allowed::not_there("repo", "it is not in a git repository"))?;
    // The root may be above what the operator allows.
    match allowed::path(app, caller, root) {
        true => Ok(root.to_owned()),
        false => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_an_owner_and_a_name_and_nothing_else() {
        for repo in ["owner/name", "o.w-n_er/na.me"] {
            assert_eq!(address(repo).unwrap().as_str(), format!("https://github.com/{repo}"));
        }
        for repo in
            ["name", "a/b/c", "../x", "-a/b", "a/.git", "", "a b/c", "file:///etc", "http://x/y", "ext::sh"]
        {
            assert_eq!(address(repo).unwrap_err().code(), ErrorCode::InvalidRepoFormat, "{repo}");
        }
        assert_eq!(address("git@host.example:a/b").unwrap().as_str(), "git@host.example:a/b");
    }
}
