//! Puts a patch into the user's repository, without ever letting git see that it is one.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::pristine_git;
use crate::programs::{Git, ProgramError};
use crate::raw_path::escape;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The patch is empty.
    Nothing,
    /// Its changes are in the work tree, unstaged.
    Changes,
}

/// Why a patch was not applied. The repository is unchanged, unless the disk filled up half-way.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The files have changed since, or the patch reaches where it must not.
    #[error("the changes do not apply to `{}`: {}", repository.display(), problems.join("; "))]
    Conflict {
        /// Where.
        repository: PathBuf,
        /// What git says, one problem each, the first ten.
        problems: Vec<String>,
    },
    /// The patch passed the check and then could not be written.
    #[error("failed to write the changes to `{}`: {message}", repository.display())]
    Write {
        /// Where.
        repository: PathBuf,
        /// What git says.
        message: String,
    },
    /// There is no git that should be started.
    #[error("no git can be used")]
    Git(#[from] ProgramError),
    /// Git could not be started, or the patch not be read.
    #[error("failed to {action}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// How many problems are repeated.
const MAX_PROBLEMS: usize = 10;

/// No attribute may change content or name a filter. `info/attributes` of the repository in `GIT_DIR` (ours)
/// outranks every `.gitattributes` in the work tree (theirs).
const NO_ATTRIBUTES: &str = "* -text !eol !crlf !ident !filter !working-tree-encoding !whitespace\n";

/// Applies a patch to the work tree at `repository`. Nothing is staged. Git is given a repository of our
/// own, made for the moment beside the patch, with the work tree pointing at the user's: so neither their
/// configuration, hooks, filters, attributes nor file-system monitor is used, and git's own checks
/// (no `..`, no absolute path, nothing through a symlink, nothing in `.git`) hold.
///
/// # Errors
/// [`ApplyError::Conflict`] if it does not apply as a whole; then nothing has changed.
pub fn apply(patch: &Path, repository: &Path) -> Result<Applied, ApplyError> {
    apply_outside(patch, repository, None)
}

/// The same, unless the patch writes into the state folder: where a home is a repository, that is in it. What is in there
/// decides how runs are made, and an agent would need no trust to write it.
///
/// # Errors
/// [`ApplyError::Conflict`] also names what is in the state folder.
pub fn apply_outside(patch: &Path, repository: &Path, state: Option<&Path>) -> Result<Applied, ApplyError> {
    let on = |action: &'static str| move |source| ApplyError::Io { action, source };
    let patch = patch.canonicalize().map_err(on("find the patch"))?;
    let repository = repository.canonicalize().map_err(on("find the repository"))?;
    if patch.metadata().map_err(on("read the patch"))?.len() == 0 {
        return Ok(Applied::Nothing);
    }
    let git = Git::of_this_process(Some(&repository))?;
    let scratch = Scratch::beside(&patch).map_err(on("make a folder beside the patch"))?;
    scratch.init().map_err(on("make a repository"))?;
    let run = |options: &[&str]| {
        let mut command = pristine_git::command(&git, &scratch.0);
        git_apply(&mut command, &repository, &patch, options);
        command.output().map_err(on("start git"))
    };
    if let Some(state) = state.filter(|state| state.starts_with(&repository)) {
        let listed = run(&["--numstat", "-z"])?;
        let written = paths(&listed.stdout).filter(|path| repository.join(path).starts_with(state));
        let problems: Vec<_> = written
            .take(MAX_PROBLEMS)
            .map(|path| format!("{}: it is in the state folder", escape(path)))
            .collect();
        if !problems.is_empty() {
            return Err(ApplyError::Conflict { repository, problems });
        }
    }
    let checked = run(&["--check"])?;
    if !checked.status.success() {
        return Err(ApplyError::Conflict { repository, problems: problems(&checked.stderr) });
    }
    let applied = run(&[])?;
    if !applied.status.success() {
        return Err(ApplyError::Write { repository, message: problems(&applied.stderr).join("; ") });
    }
    Ok(Applied::Changes)
}

fn git_apply(command: &mut Command, repository: &Path, patch: &Path, options: &[&str]) {
    command.env("GIT_WORK_TREE", repository).current_dir(repository);
    command.args(["apply", "--whitespace=nowarn"]).args(options).arg("--").arg(patch);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// The paths that a patch writes: each line has two numbers before it.
fn paths(listed: &[u8]) -> impl Iterator<Item = &Path> {
    let lines = listed.split(|&byte| byte == 0);
    lines.filter_map(|line| Some(Path::new(OsStr::from_bytes(line.splitn(3, |&byte| byte == b'\t').nth(2)?))))
}

fn problems(stderr: &[u8]) -> Vec<String> {
    let said = String::from_utf8_lossy(stderr);
    let lines = said.lines().map(|line| line.strip_prefix("error: ").unwrap_or(line));
    lines.filter(|line| !line.is_empty()).take(MAX_PROBLEMS).map(str::to_owned).collect()
}

/// A folder that is gone when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(patch: &Path) -> io::Result<Self> {
        let folder = patch.parent().unwrap_or(Path::new("/"));
        for number in 0..100_u32 {
            let path = folder.join(format!(".apply-{}-{number}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn init(&self) -> io::Result<()> {
        pristine_git::init(&self.0)?;
        std::fs::write(self.0.join("info/attributes"), NO_ATTRIBUTES)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left-overs beside a patch are harmless; the error that led here matters more.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
