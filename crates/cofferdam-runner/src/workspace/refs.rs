//! Turns the name that a person gave into a commit, or into the names they may have meant.

use std::path::Path;

use cofferdam_core::BranchName;
use serde::{Deserialize, Serialize};
use strsim::osa_distance;

use crate::pristine_git;
use crate::programs::Git;

/// A commit, and how the checkout's `HEAD` refers to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Resolved {
    pub(super) commit: String,
    /// The branch that was asked for; `None` leaves `HEAD` detached.
    pub(super) branch: Option<String>,
}

/// How many names are suggested.
const SUGGESTIONS: usize = 3;
/// How many names are compared with the one that was asked for, and how long they are at most. The attack: a repository with a
/// million long names, and a reference that it has not.
const MOST_COMPARED: usize = 10_000;
const LONGEST_COMPARED: usize = 200;

/// What is asked of a repository.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// A branch, a tag or a commit.
    pub(super) reference: Option<&'a str>,
    /// The branch that counts if it is there and no reference is given.
    pub(super) branch: Option<&'a BranchName>,
}

/// A bare repository of ours, of what somebody else sent.
#[derive(Clone, Copy)]
pub(super) struct Bare<'a> {
    pub(super) git: &'a Git,
    pub(super) path: &'a Path,
}

/// Finds the commit of a branch, a tag or a commit's own name; without one, of the default branch. If there is none, the names
/// that are most like it.
pub(super) fn resolve(bare: Bare<'_>, asked: Asked<'_>) -> Result<Resolved, Vec<String>> {
    let of_branch = |branch: String| {
        let commit = bare.commit(&format!("refs/heads/{branch}"))?;
        Some(Resolved { commit, branch: Some(branch) })
    };
    let found = match asked.reference {
        None => {
            let preferred = asked.branch.and_then(|branch| of_branch(branch.as_str().to_owned()));
            preferred.or_else(|| bare.head_branch().and_then(of_branch))
        }
        Some(name) => find(bare, name).map(|(commit, branch)| Resolved { commit, branch }),
    };
    found.ok_or_else(|| nearest(asked.name(), &bare.branches_and_tags()))
}

impl<'a> Asked<'a> {
    /// What it is called where it is not found.
    pub(super) fn name(&self) -> &'a str {
        self.reference.unwrap_or("HEAD")
    }
}

fn find(bare: Bare<'_>, name: &str) -> Option<(String, Option<String>)> {
    // Git's own syntax for revisions (`@{u}`, `^`, `:path`, `..`) is not offered.
    if name.is_empty()
        || name.starts_with('-')
        || name.contains(['~', '^', ':', '?', '*', '[', '\\', '@', ' '])
        || name.contains("..")
    {
        return None;
    }
    let short = name.strip_prefix("refs/heads/").unwrap_or(name);
    if let Some(commit) = bare.commit(&format!("refs/heads/{short}")) {
        return Some((commit, Some(short.to_owned())));
    }
    let is_hash = name.len() >= 4 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let full = name.starts_with("refs/").then(|| name.to_owned());
    let candidates = [Some(format!("refs/tags/{name}")), full, is_hash.then(|| name.to_owned())];
    candidates.into_iter().flatten().find_map(|name| bare.commit(&name)).map(|commit| (commit, None))
}

/// The names that differ least.
fn nearest(asked: &str, names: &[String]) -> Vec<String> {
    let comparable = |name: &&String| name.len() <= LONGEST_COMPARED && asked.len() <= LONGEST_COMPARED;
    let compared = names.iter().filter(comparable).take(MOST_COMPARED);
    let mut ranked: Vec<_> = compared.map(|name| (osa_distance(asked, name), name)).collect();
    ranked.sort();
    ranked.into_iter().take(SUGGESTIONS).map(|(_, name)| name.clone()).collect()
}

impl Bare<'_> {
    /// The commit that a full name leads to.
    fn commit(self, name: &str) -> Option<String> {
        let peeled = format!("{name}^{{commit}}");
        let printed = self.ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &peeled])?;
        Some(printed.trim().to_owned())
    }

    fn head_branch(self) -> Option<String> {
        let printed = self.ask(&["symbolic-ref", "HEAD"])?;
        printed.trim().strip_prefix("refs/heads/").map(str::to_owned)
    }

    fn branches_and_tags(self) -> Vec<String> {
        let printed = self.ask(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", "refs/tags"]);
        printed.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Every branch and tag with its object.
    pub(super) fn refs(self) -> Option<String> {
        self.ask(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags"])
    }

    fn ask(self, arguments: &[&str]) -> Option<String> {
        let mut command = pristine_git::command(self.git, self.path);
        let printed = pristine_git::output(command.args(arguments), "git").ok()?;
        String::from_utf8(printed).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let names = ["main", "release/1.0", "maint", "v1"].map(str::to_owned);
        assert_eq!(nearest("mian", &names)[..2], ["main", "maint"]);
    }

    #[test]
    fn names_that_are_too_many_or_too_long_are_not_compared() {
        let mut names: Vec<String> = (0..MOST_COMPARED).map(|number| format!("b{number}")).collect();
        names.push("main".to_owned());
        assert!(!nearest("main", &names).contains(&"main".to_owned()), "others came first");
        let long = "x".repeat(LONGEST_COMPARED + 1);
        assert_eq!(nearest(&long, &names), [""; 0]);
        assert_eq!(nearest("x", &[long, "y".to_owned()]), ["y"]);
    }
}
