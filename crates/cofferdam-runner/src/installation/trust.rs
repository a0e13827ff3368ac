//! Whether anybody else could change what would be started: [`ownership`](crate::ownership) says who, and here it is told
//! of the CLI that it is about.

use std::path::Path;

use super::error::InstallationError;
use crate::ownership::{self, Doubt};
use cofferdam_core::Agent;

/// Checks a path and every folder above it. A symlink is judged itself, not by where it leads.
pub(super) fn check_chain(agent: Agent, path: &Path) -> Result<(), InstallationError> {
    ownership::check_chain(path).map_err(|doubt| about(agent, doubt))
}

/// Checks everything below a folder, which is given to the agent whole.
pub(super) fn check_tree(agent: Agent, folder: &Path) -> Result<(), InstallationError> {
    let unreadable = |source| InstallationError::Unreadable { agent, path: folder.to_owned(), source };
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        ownership::check(&path).map_err(|doubt| about(agent, doubt))?;
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            check_tree(agent, &path)?;
        }
    }
    Ok(())
}

/// What is doubted of a CLI.
pub(super) fn about(agent: Agent, doubt: Doubt) -> InstallationError {
    match doubt {
        Doubt::Changeable { path, how } => InstallationError::Untrusted { agent, path, how },
        Doubt::Unreadable { path, source } => InstallationError::Unreadable { agent, path, source },
    }
}
