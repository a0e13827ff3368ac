//! Covering what is private below folders that a sandbox shows.
//!
//! The attack: a service account lives in `/opt/service`, or a repository in `/usr/src/app`. The sandbox
//! shows `/opt` and `/usr` read-only, and with them the account's keys, our own state, and the repository
//! past its mask.

use std::path::{Path, PathBuf};

use super::plan::Entry;

/// An empty folder over every place at which the entries would show `private`, which is a path of the host.
///
/// A path that was itself asked for is not covered, with one exception: a home that is all of `/opt`.
pub(crate) fn covers(entries: &[Entry], private: &Path) -> Vec<Entry> {
    let Ok(private) = private.canonicalize() else { return Vec::new() };
    let shown = |entry: &Entry| -> Option<PathBuf> {
        let Entry::Bind { source, target, .. } = entry else { return None };
        let below = private.strip_prefix(source).ok()?;
        let itself = below.as_os_str().is_empty();
        (!itself || target == Path::new("/opt")).then(|| target.join(below))
    };
    let mut places: Vec<PathBuf> = entries.iter().filter_map(shown).collect();
    places.sort();
    places.dedup();
    places.into_iter().map(|path| Entry::Empty { path }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::plan::Access;

    fn bind(source: &Path, target: &Path) -> Entry {
        let (source, target) = (source.to_owned(), target.to_owned());
        Entry::Bind { source, target, access: Access::ReadOnly, owner: None }
    }

    #[test]
    fn what_is_shown_with_its_surroundings_is_covered_and_what_was_asked_for_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let shown = folder.path().canonicalize().unwrap();
        let private = shown.join("a/home");
        std::fs::create_dir_all(&private).unwrap();
        std::os::unix::fs::symlink(&private, shown.join("link")).unwrap();
        let entries = [bind(&shown, Path::new("/opt/x")), bind(Path::new("/usr"), Path::new("/usr"))];
        let covered = [Entry::Empty { path: "/opt/x/a/home".into() }];
        assert_eq!(covers(&entries, &private), covered);
        assert_eq!(covers(&entries, &shown.join("link")), covered);
        assert_eq!(covers(&[bind(&private, &private)], &private), []);
    }
}
