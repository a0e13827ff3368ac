//! Which repository the caller means: a folder, an address, or the one around the current folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::caller::Caller;
use crate::failure::UsageError;

/// What is meant; nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// As the input of a run has it: an address as it was typed, or the path of a root.
    pub(crate) repo: Option<String>,
    /// The root of the work tree on this machine, if it is one: a diff could be applied to it.
    pub(crate) local: Option<PathBuf>,
}

/// Decides what is meant by a path or an address; by nothing, the repository around the current folder. Whether an address is a good one is the core's to say.
pub(crate) fn choose(repo: Option<&OsStr>, caller: &Caller) -> Result<Chosen, UsageError> {
    if let Some(address) = repo.and_then(OsStr::to_str).filter(|text| is_address(text, caller)) {
        return Ok(Chosen { repo: Some(address.to_owned()), local: None });
    }
    let start = repo.map_or_else(|| caller.current_folder.clone(), |path| caller.resolve(Path::new(path)));
    let root = find_repository(&start)?;
    match root.to_str() {
        Some(path) => Ok(Chosen { repo: Some(path.to_owned()), local: Some(root) }),
        None => Err(UsageError::new(
            format!("--repo: the path {} is not valid UTF-8", root.display()),
            "rename the folder",
        )),
    }
}

/// The root of the repository that `start` is in.
///
/// This walks up as git does and looks at nothing inside `.git`, whose content is the repository's own.
fn find_repository(start: &Path) -> Result<PathBuf, UsageError> {
    let hint =
        "change to a repository, name one with `--repo PATH`, or type `--no-repo` for an empty workspace";
    let start = start
        .canonicalize()
        .map_err(|error| UsageError::new(format!("{} cannot be opened: {error}", start.display()), hint))?;
    root_around(&start).ok_or_else(|| {
        UsageError::new(
            format!("{} is not in a git repository (there is no .git here or above)", start.display()),
            hint,
        )
    })
}

/// The root of the repository around a folder, if it is in one.
pub(crate) fn root_around(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let is_root = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    folder.ancestors().find(is_root).map(Path::to_path_buf)
}

/// Whether a text names a place to fetch from and not a folder here.
fn is_address(text: &str, caller: &Caller) -> bool {
    if text.starts_with('-') || text.contains("://") || text.contains("::") {
        return true;
    }
    // `host:path` is an address, unless a folder has that very name; `./host:path` never is one.
    let scp_like = text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'));
    scp_like && !caller.resolve(Path::new(text)).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller_in(folder: &Path) -> Caller {
        Caller { env: Default::default(), current_folder: folder.to_path_buf() }
    }

    fn named(text: &str, caller: &Caller) -> Chosen {
        choose(Some(OsStr::new(text)), caller).unwrap()
    }

    #[test]
    fn the_repository_around_the_current_folder_is_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("r/.git")).unwrap();
        std::fs::create_dir_all(root.join("r/deep/down")).unwrap();
        let chosen = choose(None, &caller_in(&root.join("r/deep/down"))).unwrap();
        assert_eq!(chosen.repo.as_deref(), root.join("r").to_str());
        assert_eq!(chosen.local, Some(root.join("r")));
    }

    #[test]
    fn addresses_and_folders_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a:b/.git")).unwrap();
        let caller = caller_in(folder.path());
        for text in
            ["https://host/a", "git@host:a", "host:a", "file:///srv/a", "ext::sh -c id", "--upload-pack=id"]
        {
            assert_eq!(named(text, &caller), Chosen { repo: Some(text.to_owned()), local: None });
        }
        assert!(named("a:b", &caller).local.is_some());
        assert!(named("./a:b", &caller).local.is_some());
    }
}
