//! Whether anybody else could change what would be started: [`ownership`](crate::ownership) says who, and here it is told
//! of the CLI that it is about.

use std::path::Path;

use super::Cli;
use super::error::InstallationError;
use crate::ownership::{self, Doubt};

/// Checks a path and every folder above it. A symlink is judged itself, not by where it leads.
pub(super) fn check_chain(cli: Cli, path: &Path) -> Result<(), InstallationError> {
    ownership::check_chain(path).map_err(|doubt| about(cli, doubt))
}

/// Checks everything below a folder, which is given to the agent whole.
pub(super) fn check_tree(cli: Cli, folder: &Path) -> Result<(), InstallationError> {
    let unreadable = |source| InstallationError::Unreadable { cli, path: folder.to_owned(), source };
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        ownership::check(&path).map_err(|doubt| about(cli, doubt))?;
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            check_tree(cli, &path)?;
        }
    }
    Ok(())
}

/// What is doubted of a CLI.
pub(super) fn about(cli: Cli, doubt: Doubt) -> InstallationError {
    match doubt {
        Doubt::Changeable { path, how } => InstallationError::Untrusted { cli, path, how },
        Doubt::Unreadable { path, source } => InstallationError::Unreadable { cli, path, source },
    }
}
