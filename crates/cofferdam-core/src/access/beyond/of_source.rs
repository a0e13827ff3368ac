//! Where a workspace comes from, and which branches are pushed, beside what the operator allows.

use std::path::{Component, Path};

use crate::access::Beyond;
use crate::publish::BranchName;
use crate::repo_url::RepoUrl;
use crate::run::{RunRequest, Source};
use crate::settings::ServiceSettings;

/// Whether a source may be named.
pub(super) fn named(
    source: &Source,
    service: &ServiceSettings,
    is_below_linked_root: &dyn Fn(&Path) -> bool,
) -> Option<Beyond> {
    let is_below_root = |path: &Path| {
        // A path with `..` in it is below nothing for sure.
        path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
            && (service.allowed_roots.iter().any(|root| root.holds(path)) || is_below_linked_root(path))
    };
    let is_allowed = match source {
        Source::Empty => true,
        Source::Local { path } => is_below_root(path),
        Source::Git { url, .. } => match url.folder() {
            Some(path) => is_below_root(&path),
            None => service.allows_repo(url),
        },
    };
    // What is refused is not repeated: whoever may not name a path learns nothing about what it leads to.
    let problem = match source {
        Source::Local { .. } => "this path is not allowed",
        Source::Git { .. } | Source::Empty => "this address is not allowed",
    };
    (!is_allowed).then(|| Beyond::new("repo", problem.to_owned()))
}

/// Whether two sources are one repository, at whichever commit.
pub(super) fn is_same_place(a: &Source, b: &Source) -> bool {
    match (place(a), place(b)) {
        (Some(a), Some(b)) => a == b,
        (Some(_) | None, _) => false,
    }
}

fn place(source: &Source) -> Option<RepoUrl> {
    match source {
        Source::Empty => None,
        Source::Local { path } => Some(RepoUrl::of_folder(path)),
        Source::Git { url, .. } => Some(url.clone()),
    }
}

/// The branches that a run pushes, by us or by its agent, and that nobody has allowed.
pub(super) fn pushed(request: &RunRequest, service: &ServiceSettings) -> Vec<Beyond> {
    let by_us = request.publish.as_ref().map(|publish| ("branch", publish.branch.as_str()));
    let by_agent = request.policy.egress.push.as_deref().map(|branch| ("options.push", branch));
    let is_allowed = |branch: &str| match (&request.source, branch.parse::<BranchName>()) {
        (Source::Git { url, .. }, Ok(branch)) => service.allows_push(url, &branch),
        (Source::Empty | Source::Local { .. } | Source::Git { .. }, _) => false,
    };
    let all = by_us.into_iter().chain(by_agent).filter(|(_, branch)| !is_allowed(branch));
    all.map(|(field, branch)| {
        Beyond::new(field, format!("pushing `{branch}` to this repository is not allowed"))
    })
    .collect()
}
