//! Where a repository on this machine came from.

use std::path::Path;

use cofferdam_core::{LocalUrls, RepoUrl};

use super::RepositoryOwner;
use super::git_folders::GitFolders;
use crate::pristine_git;
use crate::programs::Git;

/// The address of the remote `origin`, without the user name and password that may be in it; `None` if there is
/// none that could be fetched over the network. Git reads the file alone: nothing that the repository names is run or
/// included, and a link to a file of somebody else's is not followed.
#[must_use]
pub fn origin(root: &Path) -> Option<RepoUrl> {
    let owner = RepositoryOwner::of(root).ok()?;
    let common = GitFolders::find(root, owner).common?;
    let config = owner.open(&common.join("config")).ok()??;
    let mut git = pristine_git::command(&Git::of_this_process(Some(root)).ok()?, &common);
    git.args(["config", "--no-includes", "--file", "-", "--get", "remote.origin.url"]).stdin(config);
    let said = pristine_git::output(&mut git, "git config").ok()?;
    let address = String::from_utf8(said).ok()?.trim_end().to_owned();
    RepoUrl::parse(&without_credentials(&address), LocalUrls::Refuse).ok()
}

fn without_credentials(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_is_read_without_its_credentials_and_without_what_it_includes() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        std::fs::create_dir(&git).unwrap();
        std::fs::write(git.join("other"), "[remote \"origin\"]\n\turl = https://evil.example/x\n").unwrap();
        let config = "[remote \"origin\"]\n\turl = https://me:hunter2@host.example:8443/a/b.git\n\
                      [include]\n\tpath = other\n";
        std::fs::write(git.join("config"), config).unwrap();
        assert_eq!(
            origin(root.path()).as_ref().map(RepoUrl::as_str),
            Some("https://host.example:8443/a/b.git")
        );
        std::fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
        assert_eq!(origin(root.path()), None);
    }
}
