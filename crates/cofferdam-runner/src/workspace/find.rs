//! Which repository a folder belongs to.

use std::path::{Path, PathBuf};

use super::Error;
use crate::work_tree::work_tree_around;

/// The root of the work tree around a folder, as an absolute path without symlinks.
///
/// # Errors
/// [`Error::NotARepository`] if there is none.
pub fn find_repository(start: &Path) -> Result<PathBuf, Error> {
    work_tree_around(start).ok_or_else(|| Error::NotARepository { start: start.to_owned() })
}
