//! Which work tree a folder belongs to, without running git.

use std::path::{Path, PathBuf};

/// The root of the work tree around a folder, as an absolute path without symlinks; `None` if there is none.
pub(crate) fn work_tree_around(start: &Path) -> Option<PathBuf> {
    let folder = start.canonicalize().ok()?;
    // A `.git` that is a link counts as well: the folder is a work tree, even if its history is not
    // shown inside.
    let root = folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok());
    root.filter(|root| root.is_dir()).map(Path::to_owned)
}
