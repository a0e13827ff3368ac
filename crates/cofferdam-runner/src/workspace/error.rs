//! Why a workspace could not be prepared.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

/// Why a workspace could not be prepared. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no repository around a folder.
    #[error("`{}` is not inside a git repository", start.display())]
    NotARepository {
        /// Where the search began.
        start: PathBuf,
    },
    /// A file that would have to be read cannot be.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no space for the copy, the checkout or the mirror.
    #[error("no space left while writing `{}`", path.display())]
    DiskFull {
        /// What was being written.
        path: PathBuf,
    },
    /// The repository has no such branch, tag or commit.
    #[error("no branch, tag or commit `{reference}` in {url}")]
    RefNotFound {
        /// What was asked for.
        reference: String,
        /// Where.
        url: String,
        /// The nearest that exist.
        near: Vec<String>,
    },
    /// The repository could not be fetched.
    #[error("failed to fetch {url}: {message}")]
    Fetch {
        /// Which.
        url: String,
        /// What git says.
        message: String,
    },
    /// It took too long.
    #[error("fetching {url} took longer than {} s", within.as_secs())]
    FetchDeadline {
        /// Which.
        url: String,
        /// The deadline.
        within: Duration,
    },
    /// Nobody waits for it any more.
    #[error("preparing was cancelled")]
    Cancelled,
    /// There is no git on this machine.
    #[error("git is not installed")]
    GitMissing,
    /// More is hidden than can be covered.
    #[error("`{}` holds {count} files that look like secrets: more than can be covered", path.display())]
    TooManyHidden {
        /// The folder.
        path: PathBuf,
        /// How many.
        count: usize,
    },
    /// A pattern of the mask is malformed.
    #[error("bad mask pattern")]
    Mask(#[from] globset::Error),
    /// The system refused something else.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotARepository { .. } => {
                Some("run `git init` there, or name a repository with `--repo PATH|URL`".to_owned())
            }
            Self::Unreadable { path, .. } => {
                Some(format!("make it readable (`chmod u+r '{}'`) or remove it", path.display()))
            }
            Self::DiskFull { .. } => {
                Some("free some space, or set COFFERDAM_HOME to a larger disk".to_owned())
            }
            Self::RefNotFound { near, .. } if near.is_empty() => {
                Some("the repository has no branches yet".to_owned())
            }
            Self::RefNotFound { near, .. } => Some(format!("did you mean {}?", near.join(", "))),
            Self::Fetch { url, message } if wants_credential(message) => Some(format!(
                "export COFFERDAM_GIT_TOKEN=TOKEN with one that may read it, or make `git ls-remote {url}` work"
            )),
            Self::Fetch { url, .. } => Some(format!("try `git ls-remote {url}`")),
            Self::FetchDeadline { .. } => {
                Some("try again, or clone it yourself and name the folder with `--repo`".to_owned())
            }
            Self::TooManyHidden { .. } => {
                Some("name a smaller working_directory, or show some of them: `sandbox.mask`".to_owned())
            }
            Self::GitMissing => Some("install it: `apt install git`".to_owned()),
            Self::Cancelled | Self::Mask(_) | Self::Io { .. } => None,
        }
    }

    /// Whether the same might work later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Fetch { .. } | Self::FetchDeadline { .. })
    }

    /// A failure to read something of the caller's.
    pub(super) fn reading(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Unreadable { path: path.to_owned(), source },
            _ => Self::Io { action: "read", path: path.to_owned(), source },
        }
    }

    /// A failure to write something of ours.
    pub(crate) fn writing(path: &Path, source: io::Error) -> Self {
        if is_disk_full(&source) {
            return Self::DiskFull { path: path.to_owned() };
        }
        Self::Io { action: "write", path: path.to_owned(), source }
    }
}

/// Whether git was asked for a name and password, and had none or the wrong ones.
fn wants_credential(message: &str) -> bool {
    ["could not read Username", "could not read Password", "Authentication failed"]
        .iter()
        .any(|words| message.contains(words))
}

fn is_disk_full(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOSPC | Errno::DQUOT))
}
