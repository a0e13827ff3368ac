//! Why a workspace could not be prepared.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_core::FailureClass;
use cofferdam_sandbox::CreateError;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::programs::ProgramError;

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
    /// Something on the way to a path is a symlink, and was none when the run was accepted.
    #[error("`{}` leads through a symlink, which was put there meanwhile", path.display())]
    Linked {
        /// Which.
        path: PathBuf,
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
        /// Whose fault it is.
        fault: FetchFault,
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
    /// The sandbox could not be made in which a stranger's repository is fetched.
    #[error("the repository could not be fetched in a sandbox")]
    Sealed(#[source] CreateError),
    /// There is no git that should be started.
    #[error("no git can be used")]
    Git(#[from] ProgramError),
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

/// Whose fault it is that nothing was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FetchFault {
    /// The address's: no such host or repository, or one that is not for us.
    Address,
    /// The host's: it does not answer, or not as a git host does.
    Host,
}

impl FetchFault {
    /// Reads git's own words, which are in English because it is told so. What is not known is the host's: it is what git
    /// speaks to.
    pub(super) fn of(said: &str) -> Self {
        const OF_THE_ADDRESS: [&str; 13] = [
            "Could not resolve host",
            "unable to look up",
            "not found",
            "does not exist",
            "does not appear to be a git repository",
            "could not read Username",
            "could not read Password",
            "Authentication failed",
            "Permission denied",
            "Access denied",
            "access denied",
            "returned error: 4",
            "Host key verification failed",
        ];
        if OF_THE_ADDRESS.iter().any(|words| said.contains(words)) { Self::Address } else { Self::Host }
    }
}

impl Error {
    /// What kind of failure it is.
    #[must_use]
    pub fn class(&self) -> FailureClass {
        match self {
            Self::RefNotFound { .. } | Self::Fetch { fault: FetchFault::Address, .. } => {
                FailureClass::Repository
            }
            Self::Fetch { fault: FetchFault::Host, .. } | Self::FetchDeadline { .. } => {
                FailureClass::RepositoryHost
            }
            Self::NotARepository { .. }
            | Self::Unreadable { .. }
            | Self::DiskFull { .. }
            | Self::Cancelled
            | Self::Git(_)
            | Self::Linked { .. }
            | Self::TooManyHidden { .. }
            | Self::Mask(_)
            | Self::Io { .. } => FailureClass::Workspace,
            Self::Sealed(CreateError::Refused(_)) => FailureClass::Refused,
            Self::Sealed(_) => FailureClass::Sandbox,
        }
    }

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
            Self::Linked { .. } => {
                Some("see who may write there, then name the folder itself with `--repo PATH`".to_owned())
            }
            Self::DiskFull { .. } => {
                Some("free some space, or set COFFERDAM_HOME to a larger disk".to_owned())
            }
            Self::RefNotFound { near, .. } if near.is_empty() => {
                Some("the repository has no branches yet".to_owned())
            }
            Self::RefNotFound { near, .. } => Some(format!("did you mean {}?", near.join(", "))),
            Self::Fetch { url, message, .. } if wants_credential(message) => {
                Some(format!("{}, or make `git ls-remote {url}` work", what_to_export(url)))
            }
            Self::Fetch { url, .. } => Some(format!("try `git ls-remote {url}`")),
            Self::FetchDeadline { .. } => {
                Some("try again, or clone it yourself and name the folder with `--repo`".to_owned())
            }
            Self::TooManyHidden { .. } => {
                Some("name a smaller working_directory, or show some of them: `sandbox.mask`".to_owned())
            }
            Self::Git(error) => Some(error.remedy()),
            Self::Sealed(CreateError::Refused(refusal)) => Some(refusal.remedy.clone()),
            Self::Cancelled | Self::Sealed(_) | Self::Mask(_) | Self::Io { .. } => None,
        }
    }

    /// A failure to read something of the caller's.
    pub(super) fn reading(path: &Path, source: io::Error) -> Self {
        if source.raw_os_error().map(Errno::from_raw_os_error) == Some(Errno::LOOP) {
            return Self::Linked { path: path.to_owned() };
        }
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

/// How a token for an address is given.
fn what_to_export(url: &str) -> String {
    let host = url.strip_prefix("https://").and_then(|rest| rest.split('/').next()).unwrap_or("HOST");
    match host {
        "github.com" => "export GITHUB_TOKEN=TOKEN with one that may read it".to_owned(),
        "gitlab.com" => "export GITLAB_TOKEN=TOKEN with one that may read it".to_owned(),
        _ => format!(
            "export COFFERDAM_GIT_HOST={host} COFFERDAM_GIT_TOKEN=TOKEN with one that may read it, or list it in `git.credentials`"
        ),
    }
}

fn is_disk_full(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOSPC | Errno::DQUOT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gits_own_words_tell_a_wrong_address_from_a_host_that_does_not_answer() {
        for said in [
            "fatal: unable to access 'https://nowhere.invalid/a/': Could not resolve host: nowhere.invalid",
            "ssh: Could not resolve hostname nowhere.invalid: Name or service not known",
            "fatal: unable to look up nowhere.invalid (port 9418) (Name or service not known)",
            "remote: Repository not found.\nfatal: repository 'https://github.com/a/b/' not found",
            "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
            "fatal: unable to access 'https://h/a/': The requested URL returned error: 403",
            "fatal: '/srv/none' does not appear to be a git repository",
            "git@github.com: Permission denied (publickey).",
        ] {
            assert_eq!(FetchFault::of(said), FetchFault::Address, "{said}");
        }
        for said in [
            "fatal: unable to access 'https://h/a/': Failed to connect to h port 443 after 0 ms: Couldn't connect to server",
            "fatal: unable to access 'https://h/a/': The requested URL returned error: 503",
            "fatal: unable to access 'https://h/a/': server certificate verification failed",
            "error: RPC failed; curl 56 GnuTLS recv error\nfatal: early EOF",
            "fatal: unable to connect to h:\nh[0: 192.0.2.1]: errno=Connection timed out",
            "ssh: connect to host h port 22: Network is unreachable",
            "fatal: something that nobody has seen before",
        ] {
            assert_eq!(FetchFault::of(said), FetchFault::Host, "{said}");
        }
    }
}
