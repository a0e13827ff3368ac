//! Every file of a project that git would not ignore, in the order of the names.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use super::Project;

/// Entries that are looked at. A project with more is searched in part, and says so.
const MOST_ENTRIES: usize = 300_000;

/// What a walk has left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walked {
    /// Nothing.
    Whole,
    /// What comes after the bound.
    Part,
}

impl Project {
    /// Calls `visit` with each file below a folder, by its path from the root, until it says that this is enough.
    pub(super) fn each(&self, folder: &Path, mut visit: impl FnMut(&Path) -> Next) -> Result<Walked, String> {
        let mut walk = WalkBuilder::new(self.path.join(folder));
        // A repository's own rules, and none of this machine's. `.git` is git's business, and hidden files are the project's.
        walk.hidden(false)
            .parents(true)
            .require_git(false)
            .git_global(false)
            .git_exclude(false)
            .ignore(false);
        walk.follow_links(false).max_filesize(None);
        walk.filter_entry(|entry| entry.file_name() != ".git");
        walk.sort_by_file_name(Ord::cmp);
        let mut count = 0;
        for entry in walk.build() {
            count += 1;
            if count > MOST_ENTRIES {
                return Ok(Walked::Part);
            }
            // One that cannot be read is left out; the first is the folder itself.
            let entry = match entry {
                Ok(entry) => entry,
                Err(_) if count == 1 => return Err(format!("there is no folder {}", folder.display())),
                Err(_) => continue,
            };
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if let (true, Ok(below)) = (is_file, entry.path().strip_prefix(&self.path))
                && visit(below) == Next::Stop
            {
                return Ok(Walked::Whole);
            }
        }
        Ok(Walked::Whole)
    }
}

/// Whether a walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Go,
    Stop,
}

/// A path as it is shown: what is no text in it is replaced.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The same for a list of them.
pub(super) fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| shown(path) + "\n").collect()
}
