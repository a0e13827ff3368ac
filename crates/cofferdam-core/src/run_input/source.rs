//! Where a workspace comes from: an address, `owner/name`, or a path.

use std::path::{Component, Path, PathBuf};

use super::bounds::LONGEST_REPO;
use super::{InputError, InputErrorKind, InputSyntax, MayNamePath, PathUse, Surroundings};
use crate::git_reference::git_reference;
use crate::project::Project;
use crate::repo_url::{LocalUrls, RepoUrl, RepoUrlError};
use crate::run::Source;

/// Finds what `repo` and `ref` name, if this caller may name it.
///
/// # Errors
/// If it is nothing that a workspace can come from.
pub fn find_source(
    repo: Option<&str>,
    reference: Option<&str>,
    local_urls: LocalUrls,
    syntax: InputSyntax,
    may_name_path: MayNamePath<'_>,
    surroundings: &dyn Surroundings,
) -> Result<Source, InputError> {
    let reference = checked_reference(reference)?;
    let Some(repo) = repo else {
        return match reference {
            Some(_) => {
                let hint = format!("name one with {}", syntax.name("repo"));
                Err(InputError::invalid("ref", "there is no repository", hint))
            }
            None => Ok(Source::Empty),
        };
    };
    if repo.chars().count() > LONGEST_REPO {
        let problem = format!("must not be longer than {LONGEST_REPO} characters");
        return Err(InputError::new("repo", InputErrorKind::RepoFormat, problem, HINT));
    }
    if repo.starts_with('/') {
        return Ok(here(local_root(Path::new(repo), may_name_path, surroundings)?, reference));
    }
    let url = address(repo, local_urls)?;
    Ok(Source::Git { url, reference })
}

/// The source of a project, from its own reference or from another.
pub(super) fn of_project(project: &Project, reference: Option<&str>) -> Result<Source, InputError> {
    let reference = checked_reference(reference)?;
    Ok(match project.source.clone() {
        Source::Empty => Source::Empty,
        Source::Local { path } => here(path, reference),
        Source::Git { url, reference: own } => Source::Git { url, reference: reference.or(own) },
    })
}

/// A repository of this machine: as it is now, or one of its commits.
fn here(path: PathBuf, reference: Option<String>) -> Source {
    match reference {
        None => Source::Local { path },
        Some(_) => Source::Git { url: RepoUrl::of_folder(&path), reference },
    }
}

fn checked_reference(reference: Option<&str>) -> Result<Option<String>, InputError> {
    reference.map(git_reference).transpose().map_err(|error| InputError::of_value("ref", error))
}

const HINT: &str = "use an address such as `https://host/path` or `git@host:path`, or the path of a folder";

fn address(repo: &str, local_urls: LocalUrls) -> Result<RepoUrl, InputError> {
    let text = match is_short(repo) {
        true => format!("https://github.com/{repo}"),
        false => repo.to_owned(),
    };
    RepoUrl::parse(&text, local_urls).map_err(|error| {
        let hint = match error {
            RepoUrlError::Credentials { .. } => {
                "leave the password out and let git's credential helper or an ssh key supply it"
            }
            _ => HINT,
        };
        InputError::new("repo", InputErrorKind::RepoFormat, error.to_string(), hint)
    })
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

/// The root of the repository at a path. Whoever may not name the path learns nothing about it: neither by `..` nor by
/// a link, whose target may be there or not.
fn local_root(
    path: &Path,
    may_name_path: MayNamePath<'_>,
    surroundings: &dyn Surroundings,
) -> Result<PathBuf, InputError> {
    let may_name = |path: &Path| may_name_path(path, PathUse::Repository);
    let refused = || {
        InputError::new(
            "repo",
            InputErrorKind::NotAllowed,
            "this path is not allowed to this caller",
            "add a folder above it to service.allowed_roots, or use a key with the scope `system`",
        )
    };
    let missing = |problem: &str| {
        InputError::new("repo", InputErrorKind::PathNotFound, problem, "use the path of a repository")
    };
    if !may_name(&without_steps_up(path)) {
        return Err(refused());
    }
    let Some(found) = look_at(path, surroundings) else {
        let nearest = path.ancestors().skip(1).find_map(|above| look_at(above, surroundings));
        return Err(match nearest.is_none_or(|nearest| may_name(&nearest)) {
            true => missing("there is no such folder"),
            false => refused(),
        });
    };
    if !may_name(&found) {
        return Err(refused());
    }
    let root =
        surroundings.repository_root(&found).ok_or_else(|| missing("it is not in a git repository"))?;
    // The root may be above what the operator allows.
    match may_name(&root) {
        true => Ok(root),
        false => Err(refused()),
    }
}

/// No system call takes a path with a NUL in it.
pub(super) fn look_at(path: &Path, surroundings: &dyn Surroundings) -> Option<PathBuf> {
    let is_whole = !path.as_os_str().as_encoded_bytes().contains(&0);
    is_whole.then(|| surroundings.canonical(path)).flatten()
}

/// The path with each `..` taken as written, without a look at links.
fn without_steps_up(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
