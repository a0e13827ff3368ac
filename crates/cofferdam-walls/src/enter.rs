//! The walls, one after the other.

use std::io;

use cofferdam_core::WallPlan;

use crate::{landlock, limits, seccomp};

/// Why the agent was not started. A wall that does not stand is never skipped: the caller must not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A limit of the process could not be set.
    #[error("limits: failed to set {limit}")]
    Limit {
        /// The kernel's name of the limit.
        limit: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The flag could not be set.
    #[error("no_new_privileges: failed to set the flag")]
    NoNewPrivileges(#[source] io::Error),
    /// The file-access rules could not be made or enforced.
    #[error("landlock: failed to enforce the file-access rules")]
    Landlock(#[from] landlock::Error),
    /// The filter could not be built or installed.
    #[error("seccomp: failed to install the system-call filter")]
    Seccomp(#[from] seccompiler::Error),
    /// There is no such program in any folder of `PATH`.
    #[error("program `{0}` not found")]
    NotFound(String),
    /// The program is there and the kernel does not run it.
    #[error("failed to execute `{program}`")]
    Execute {
        /// The path that was tried.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Whoever waits for the seal cannot be told it, or cannot say that the program is to start.
    #[error("failed to report the seal")]
    Control(#[source] io::Error),
    /// The arguments of the role do not say what to start.
    #[error("usage: enter-walls [--control-fd N [--measure PATHS]] PLAN PROGRAM [ARGUMENT]…: {0}")]
    Usage(String),
}

/// Puts the walls of `plan` around the calling process, which must have one thread only: a second one
/// would stay outside. There is no way back.
///
/// The order matters. Limits and the flag need calls that the filter may refuse later; the filter comes
/// last, so that it also covers everything that follows. The filter and Landlock both need
/// no-new-privileges where the caller has no capability, and set it even if the plan leaves it out.
///
/// # Errors
/// [`Error`], which names the wall. Some walls may stand already: the caller must exit.
pub fn enter(plan: &WallPlan) -> Result<(), Error> {
    if *plan == WallPlan::none() {
        return Ok(());
    }
    limits::set(plan)?;
    limits::prefer_in_oom();
    if plan.no_new_privileges {
        rustix::thread::set_no_new_privs(true).map_err(|errno| Error::NoNewPrivileges(errno.into()))?;
    }
    if let Some(writable) = &plan.landlock_writable {
        landlock::enforce(writable)?;
    }
    if plan.seccomp {
        seccomp::install()?;
    }
    Ok(())
}
