//! Which repository a folder belongs to, without running git.

use std::path::{Path, PathBuf};

use super::Error;

/// The root of the work tree around a folder, as an absolute path without symlinks.
///
/// # Errors
/// [`Error::NotARepository`] if there is none.
pub fn find_repository(start: &Path) -> Result<PathBuf, Error> {
    let refuse = || Error::NotARepository { start: start.to_owned() };
    let folder = start.canonicalize().map_err(|_| refuse())?;
    // A `.git` that is a link counts as well: the folder is a work tree, even if its history is not
    // shown inside.
    let root = folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok());
    root.filter(|root| root.is_dir()).map(Path::to_owned).ok_or_else(refuse)
}
