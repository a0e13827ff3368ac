//! Which repository the caller means: a folder, an address, or the one around the current folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cofferdam_core::{LocalUrls, RepoUrl, Source, ValueError, git_reference};

use crate::caller::Caller;
use crate::failure::UsageError;

/// What the flags say about the workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// `--no-repo`.
    Nothing,
    /// `--repo`, or the repository around the current folder without it; and `--ref`.
    Repository {
        /// A path or an address.
        repo: Option<&'a OsStr>,
        /// A branch, tag or commit.
        reference: Option<&'a str>,
    },
}

/// The workspace's source, and the local repository that a diff could be applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Where the workspace comes from.
    pub(crate) source: Source,
    /// The root of the work tree on this machine, if it is one.
    pub(crate) local: Option<PathBuf>,
}

/// Decides what is meant.
pub(crate) fn choose(wanted: Wanted<'_>, caller: &Caller) -> Result<Chosen, UsageError> {
    let Wanted::Repository { repo, reference } = wanted else {
        return Ok(Chosen { source: Source::Empty, local: None });
    };
    let named = |error: ValueError| UsageError::new(format!("--ref {}", error.problem), error.hint);
    let reference = reference.map(git_reference).transpose().map_err(named)?;
    if let Some(url) = repo.and_then(OsStr::to_str).filter(|text| is_address(text, caller)) {
        let url = parse_address(url)?;
        return Ok(Chosen { source: Source::Git { url, reference }, local: None });
    }
    let start = repo.map_or_else(|| caller.current_folder.clone(), |path| caller.resolve(Path::new(path)));
    let root = find_repository(&start)?;
    let source = match reference {
        None => Source::Local { path: root.clone() },
        Some(_) => Source::Git { url: RepoUrl::of_folder(&root), reference },
    };
    Ok(Chosen { source, local: Some(root) })
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

fn parse_address(text: &str) -> Result<RepoUrl, UsageError> {
    RepoUrl::parse(text, LocalUrls::Allow).map_err(|error| {
        let hint = match error {
            cofferdam_core::RepoUrlError::Credentials { .. } => {
                "leave the password out and let git's credential helper or an ssh key supply it"
            }
            _ => "type an address such as https://host/path or git@host:path, or the path of a folder",
        };
        UsageError::new(error.to_string(), hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller_in(folder: &Path) -> Caller {
        Caller { env: Default::default(), current_folder: folder.to_path_buf() }
    }

    fn repo(text: &str) -> Wanted<'_> {
        Wanted::Repository { repo: Some(OsStr::new(text)), reference: None }
    }

    #[test]
    fn the_repository_around_the_current_folder_is_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("r/.git")).unwrap();
        std::fs::create_dir_all(root.join("r/deep/down")).unwrap();
        let wanted = Wanted::Repository { repo: None, reference: None };
        let chosen = choose(wanted, &caller_in(&root.join("r/deep/down"))).unwrap();
        assert_eq!(chosen.source, Source::Local { path: root.join("r") });
        assert_eq!(chosen.local, Some(root.join("r")));
    }

    #[test]
    fn addresses_and_folders_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a:b/.git")).unwrap();
        let caller = caller_in(folder.path());
        for text in ["https://host/a", "git@host:a", "host:a", "file:///srv/a"] {
            let chosen = choose(repo(text), &caller).unwrap();
            assert!(matches!(chosen.source, Source::Git { .. }) && chosen.local.is_none(), "{text}");
        }
        assert!(choose(repo("a:b"), &caller).unwrap().local.is_some());
        assert!(choose(repo("./a:b"), &caller).unwrap().local.is_some());
    }

    #[test]
    fn addresses_that_run_programs_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["ext::sh -c id", "--upload-pack=id", "http://host/a", "https://me:pw@host/a"] {
            let error = choose(repo(text), &caller_in(folder.path())).unwrap_err();
            assert!(!error.to_string().contains("pw@"), "{error}");
        }
    }

    #[test]
    fn a_ref_of_a_local_repository_is_fetched_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("a b%");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let wanted = Wanted::Repository { repo: Some(root.as_os_str()), reference: Some("main") };
        let chosen = choose(wanted, &caller_in(Path::new("/"))).unwrap();
        let Source::Git { url, reference } = chosen.source else { panic!("{chosen:?}") };
        assert!(url.as_str().starts_with("file:///") && url.as_str().ends_with("/a%20b%25"), "{url}");
        assert_eq!(reference.as_deref(), Some("main"));
        assert_eq!(chosen.local, Some(root));
    }
}
