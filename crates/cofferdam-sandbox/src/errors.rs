//! Why there is no sandbox, and why one cannot be used.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_core::SandboxId;

/// A policy that cannot be enforced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct Refusal {
    /// What cannot be enforced, and why.
    pub problem: String,
    /// What to type.
    pub remedy: String,
    /// What it is about, for programs.
    pub kind: RefusalKind,
}

/// What a [`Refusal`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The policy asks for something that cannot be held here.
    Policy,
    /// There is no engine, and no program of a runtime.
    RuntimeMissing,
    /// There is one, and it does not answer.
    DaemonUnavailable,
    /// It answers others, and not this user.
    DaemonForbidden,
    /// It has no such image.
    ImageMissing,
    /// The image is there and cannot be used, or its name cannot be one.
    ImageInvalid,
}

impl Refusal {
    /// A policy that asks for too much.
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into(), kind: RefusalKind::Policy }
    }

    /// The same about something else.
    #[must_use]
    pub fn about(self, kind: RefusalKind) -> Self {
        Self { kind, ..self }
    }
}

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// This machine does not allow it; trying again will not help.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The file systems of the workspace or of the state folder cannot be layered. A copy can be used instead,
    /// and is sealed just as well.
    #[error("the workspace of sandbox {id} cannot be an overlay: {message}")]
    NoOverlay {
        /// Which.
        id: SandboxId,
        /// What the kernel said.
        message: String,
    },
    /// The disk is full.
    #[error("no space left for the sandbox {id}")]
    DiskFull {
        /// Which.
        id: SandboxId,
    },
    /// Anything else.
    #[error("failed to create sandbox {id}: {message}")]
    Failed {
        /// Which.
        id: SandboxId,
        /// What went wrong, with the step that it happened in.
        message: String,
    },
    /// It did not come up in time.
    #[error("sandbox {id} did not start within {} s", within.as_secs())]
    Deadline {
        /// Which.
        id: SandboxId,
        /// The deadline.
        within: Duration,
    },
}

/// Why a sandbox cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing is left of it.
    #[error("no such sandbox: {0}")]
    NotFound(SandboxId),
    /// The folder that holds them cannot be read.
    #[error("failed to list the sandboxes in {}", path.display())]
    Listing {
        /// The folder.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// Its record is damaged, or the system refused something.
    #[error("failed to {action} of sandbox {id}")]
    Io {
        /// Which.
        id: SandboxId,
        /// What was attempted.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// A step of making a sandbox that the system refused.
pub(crate) fn failed(id: &SandboxId, step: &str, error: &io::Error) -> CreateError {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => CreateError::DiskFull { id: id.clone() },
        _ => CreateError::Failed { id: id.clone(), message: format!("could not {step}: {error}") },
    }
}

impl OpenError {
    /// An action on a sandbox that the system refused.
    pub(crate) fn io(id: &SandboxId, action: &'static str) -> impl FnOnce(io::Error) -> Self + use<> {
        let id = id.clone();
        move |source| Self::Io { id, action, source }
    }
}
