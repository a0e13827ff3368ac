//! Programs that are started by their name, git above all.
//!
//! They are found as the agents' CLIs are ([`installation`](crate::installation)): along the absolute entries of PATH, never
//! in the repository, and never where somebody else could have put them. The attack: a repository that brings a `git`, and a
//! PATH with `.` or with a folder of that repository in it (`direnv`, `node_modules/.bin`). Whoever applies a diff
//! there would start that one, with all the rights of the caller. So nothing here is ever started by a bare name.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::installation::{Search, first_on_path, is_in_repository};
use crate::ownership::{self, Doubt};
use crate::work_tree::work_tree_around;

/// Why a program cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is none on PATH.
    #[error("{name} is not on PATH")]
    NotFound {
        /// Its name.
        name: &'static str,
    },
    /// It lies in the repository.
    #[error("{name} leads to {}, which is in the repository", path.display())]
    InRepository {
        /// Its name.
        name: &'static str,
        /// What lies there.
        path: PathBuf,
    },
    /// Somebody else than root and the caller could change it.
    #[error("{} {how}, who could change what {name} does", path.display())]
    Untrusted {
        /// Its name.
        name: &'static str,
        /// What could be changed.
        path: PathBuf,
        /// By whom.
        how: String,
    },
    /// It could not be looked at.
    #[error("failed to look at {}", path.display())]
    Unreadable {
        /// What could not be looked at.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl ProgramError {
    /// What to type.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NotFound { name } => format!("install it: `apt install {name}`"),
            Self::InRepository { name, .. } => format!("install {name} outside of the repository"),
            Self::Untrusted { name, path, .. } => {
                format!(
                    "look at `ls -ld '{}'`, or put the folder of another {name} first on PATH",
                    path.display()
                )
            }
            Self::Unreadable { path, .. } => format!("look at `ls -ld '{}'`", path.display()),
        }
    }
}

/// Finds a program on this process's own PATH, for work on a repository; without one, for work in the repository around the
/// current folder, if there is one.
///
/// # Errors
/// [`ProgramError`] says what to type.
pub fn find_program(name: &'static str, repository: Option<&Path>) -> Result<PathBuf, ProgramError> {
    on_own_path(repository, |search| find(name, search))
}

/// The first one on PATH is meant, as in a shell: if that one should not be used, the next is not tried.
fn find(name: &'static str, search: &Search<'_>) -> Result<PathBuf, ProgramError> {
    let command = first_on_path(name, search).ok_or(ProgramError::NotFound { name })?;
    let doubted = |doubt| match doubt {
        Doubt::Changeable { path, how } => ProgramError::Untrusted { name, path, how },
        Doubt::Unreadable { path, source } => ProgramError::Unreadable { path, source },
    };
    for passed in ownership::walk(&command).map_err(doubted)?.passed {
        if is_in_repository(&passed, search) {
            return Err(ProgramError::InRepository { name, path: passed });
        }
        ownership::check(&passed).map_err(doubted)?;
    }
    Ok(command)
}

/// The git that is started.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    /// What it finds programs of its own by, such as ssh.
    path: OsString,
}

impl Git {
    /// Finds git as [`find_program`] does.
    ///
    /// # Errors
    /// [`ProgramError`] says what to type.
    pub fn of_this_process(repository: Option<&Path>) -> Result<Self, ProgramError> {
        on_own_path(repository, Self::find)
    }

    fn find(search: &Search<'_>) -> Result<Self, ProgramError> {
        Ok(Self { program: find("git", search)?, path: safe_path(search) })
    }

    /// The git that a tool was told of, in the tool's own sandbox.
    pub(crate) fn in_tool(program: &Path) -> Self {
        let path = own_path();
        Self {
            program: program.to_owned(),
            path: safe_path(&Search { path: &path, home: None, exclude: None }),
        }
    }

    /// The git of the system's folders, which the sandboxes of tools show, whether it is there or not. One in the
    /// caller's home is not shown.
    #[must_use]
    pub fn for_tools(search: &Search<'_>) -> PathBuf {
        let is_shown = |folder: &Path| ["/usr", "/bin", "/opt"].iter().any(|root| folder.starts_with(root));
        let visible =
            |folder: &&PathBuf| is_shown(folder) && folder.canonicalize().is_ok_and(|real| is_shown(&real));
        let defaults = ["/usr/bin", "/usr/local/bin"].map(PathBuf::from);
        let folders: Vec<PathBuf> = search.path.iter().filter(visible).cloned().chain(defaults).collect();
        let found = find("git", &Search { path: &folders, ..*search });
        found.unwrap_or_else(|_| PathBuf::from("/usr/bin/git"))
    }

    /// A command that starts it, in the environment of this process but for PATH.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("PATH", &self.path);
        command
    }

    /// The same with no variable but PATH.
    #[must_use]
    pub fn command_without_environment(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("PATH", &self.path);
        command
    }
}

fn on_own_path<T>(repository: Option<&Path>, find: impl FnOnce(&Search<'_>) -> T) -> T {
    let around = std::env::current_dir().ok().and_then(|folder| work_tree_around(&folder));
    find(&Search { path: &own_path(), home: None, exclude: repository.or(around.as_deref()) })
}

/// This process's own PATH; where there is none, what a C library takes instead.
fn own_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/bin:/usr/bin".into());
    std::env::split_paths(&path).collect()
}

/// The entries of a PATH in which programs are looked for at all.
fn safe_path(search: &Search<'_>) -> OsString {
    let is_safe = |folder: &&PathBuf| {
        let real = folder.canonicalize().unwrap_or_else(|_| (*folder).clone());
        folder.is_absolute() && !is_in_repository(&real, search)
    };
    // Each was an entry of a PATH, so that none has a colon in it.
    std::env::join_paths(search.path.iter().filter(is_safe)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn git_is_never_of_the_repository_nor_of_a_relative_entry() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let repository = root.join("repo");
        program(&repository.join("bin/git"));
        program(&root.join("system/git"));
        symlink(repository.join("bin"), root.join("linked")).unwrap();
        let hostile = ["".into(), ".".into(), "bin".into(), repository.join("bin"), root.join("linked")];
        let path: Vec<PathBuf> = hostile.into_iter().chain([root.join("system")]).collect();
        let search = Search { path: &path, home: None, exclude: Some(&repository) };
        let git = Git::find(&search).unwrap();
        assert_eq!(git.program, root.join("system/git"));
        assert_eq!(git.path, root.join("system").into_os_string(), "what git starts is found alike");
        symlink(repository.join("bin/git"), root.join("system/other")).unwrap();
        fs::rename(root.join("system/other"), root.join("system/git")).unwrap();
        let error = Git::find(&search).unwrap_err();
        assert!(matches!(error, ProgramError::InRepository { .. }), "{error}");
        assert!(matches!(
            Git::find(&Search { path: &path[..5], ..search }),
            Err(ProgramError::NotFound { name: "git" })
        ));
        assert!(Git::find(&Search { exclude: None, ..search }).is_ok(), "elsewhere it is as good as any");
    }

    #[test]
    fn a_git_that_others_could_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        program(&root.join("bin/git"));
        let path = [root.join("bin")];
        let search = Search { path: &path, home: None, exclude: None };
        assert!(Git::find(&search).is_ok());
        fs::set_permissions(root.join("bin"), fs::Permissions::from_mode(0o777)).unwrap();
        let error = Git::find(&search).unwrap_err();
        assert!(
            matches!(&error, ProgramError::Untrusted { path, .. } if *path == root.join("bin")),
            "{error}"
        );
        assert!(error.remedy().contains("first on PATH"), "{}", error.remedy());
    }

    #[test]
    fn a_tools_git_is_of_the_system() {
        let path: Vec<PathBuf> = ["/usr/../tmp", "/home/me/bin", "/usr/bin"].map(PathBuf::from).into();
        let search = Search { path: &path, home: None, exclude: None };
        assert_eq!(Git::for_tools(&search), Path::new("/usr/bin/git"));
    }
}
