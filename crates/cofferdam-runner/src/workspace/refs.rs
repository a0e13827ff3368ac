//! Turns the name that a person gave into a commit, or into the names they may have meant.

use super::Error;
use super::mirror::Mirror;
use crate::pristine_git;

/// A commit, and how the checkout's `HEAD` refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) commit: String,
    /// The branch that was asked for; `None` leaves `HEAD` detached.
    pub(super) branch: Option<String>,
}

/// How many names are suggested.
const SUGGESTIONS: usize = 3;

/// Finds the commit of a branch, a tag or a commit's own name; without one, of the default branch.
pub(super) fn resolve(mirror: &Mirror, url: &str, reference: Option<&str>) -> Result<Resolved, Error> {
    let asked = reference.unwrap_or("HEAD");
    let found = match reference {
        None => mirror
            .head_branch()
            .and_then(|branch| Some((mirror.commit(&format!("refs/heads/{branch}"))?, Some(branch)))),
        Some(name) => find(mirror, name),
    };
    let (commit, branch) = found.ok_or_else(|| Error::RefNotFound {
        reference: asked.to_owned(),
        url: url.to_owned(),
        near: nearest(asked, &mirror.branches_and_tags()),
    })?;
    Ok(Resolved { commit, branch })
}

fn find(mirror: &Mirror, name: &str) -> Option<(String, Option<String>)> {
    // Git's own syntax for revisions (`@{u}`, `^`, `:path`, `..`) is not offered.
    if name.is_empty()
        || name.starts_with('-')
        || name.contains(['~', '^', ':', '?', '*', '[', '\\', '@', ' '])
        || name.contains("..")
    {
        return None;
    }
    let short = name.strip_prefix("refs/heads/").unwrap_or(name);
    if let Some(commit) = mirror.commit(&format!("refs/heads/{short}")) {
        return Some((commit, Some(short.to_owned())));
    }
    let is_hash = name.len() >= 4 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let full = name.starts_with("refs/").then(|| name.to_owned());
    let candidates = [Some(format!("refs/tags/{name}")), full, is_hash.then(|| name.to_owned())];
    candidates.into_iter().flatten().find_map(|name| mirror.commit(&name)).map(|commit| (commit, None))
}

/// The names that differ least.
fn nearest(asked: &str, names: &[String]) -> Vec<String> {
    let mut ranked: Vec<_> = names.iter().map(|name| (distance(asked, name), name)).collect();
    ranked.sort();
    ranked.into_iter().take(SUGGESTIONS).map(|(_, name)| name.clone()).collect()
}

/// Letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

impl Mirror {
    /// The commit that a full name leads to.
    pub(super) fn commit(&self, name: &str) -> Option<String> {
        let peeled = format!("{name}^{{commit}}");
        let printed = self.ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &peeled])?;
        Some(printed.trim().to_owned())
    }

    fn head_branch(&self) -> Option<String> {
        let printed = self.ask(&["symbolic-ref", "HEAD"])?;
        printed.trim().strip_prefix("refs/heads/").map(str::to_owned)
    }

    fn branches_and_tags(&self) -> Vec<String> {
        let printed = self.ask(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", "refs/tags"]);
        printed.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Every branch and tag with its object.
    pub(super) fn refs(&self) -> Option<String> {
        self.ask(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags"])
    }

    fn ask(&self, arguments: &[&str]) -> Option<String> {
        let mut command = pristine_git::command(&self.git, self.path());
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
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
