//! Who could change what is found at a path, besides root and the caller.
//!
//! Everything on the way must belong to root or to the caller and may not be writable by everybody; a folder like `/tmp`,
//! in which nobody may touch what is another's, is no matter. What a group may write is accepted on the way:
//! distributions give each user a group of their own, and whoever put somebody into a shared one meant it. Access lists
//! are not read.
//!
//! In a user namespace without a root of its own, root's files belong to nobody. Whoever owns `/` could change everything
//! anyway, and is trusted like root.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

/// Why something at a path is not relied on.
#[derive(Debug)]
pub(crate) enum Doubt {
    /// Somebody else could change it.
    Changeable {
        /// What could be changed.
        path: PathBuf,
        /// By whom, as the rest of a sentence about the path.
        how: String,
    },
    /// It could not be looked at.
    Unreadable {
        /// What could not be looked at.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A path without symlinks, and what was passed to find it.
#[derive(Debug)]
pub(crate) struct Way {
    /// The path, as `realpath` has it.
    pub(crate) real: PathBuf,
    /// Every folder and link that decides where it leads, from `/` on, and at last what is there.
    pub(crate) passed: Vec<PathBuf>,
}

/// Follows an absolute path name by name. Whoever could change a link or a folder on the way could choose what is found, so
/// that all of them are told.
pub(crate) fn walk(path: &Path) -> Result<Way, Doubt> {
    let unreadable = |at: &Path, source| Doubt::Unreadable { path: at.to_owned(), source };
    let mut rest = names(path);
    let mut real = PathBuf::from("/");
    let mut passed = vec![real.clone()];
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        let here = real.join(&name);
        let found = here.symlink_metadata().map_err(|source| unreadable(&here, source))?;
        passed.push(here.clone());
        if !found.is_symlink() {
            real = here;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(unreadable(path, io::Error::from(rustix::io::Errno::LOOP)));
        }
        let target = here.read_link().map_err(|source| unreadable(&here, source))?;
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        let mut before = names(&target);
        before.append(&mut rest);
        rest = before;
    }
    Ok(Way { real, passed })
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

/// Checks what is at a path. A symlink is judged itself, not by where it leads.
pub(crate) fn check(path: &Path) -> Result<(), Doubt> {
    let look = |path: &Path| {
        let unreadable = |source| Doubt::Unreadable { path: path.to_owned(), source };
        path.symlink_metadata().map_err(unreadable)
    };
    let found = look(path)?;
    let trusted = [0, look(Path::new("/"))?.uid(), rustix::process::geteuid().as_raw()];
    match suspicion(found.uid(), found.mode(), &trusted) {
        Some(how) => Err(Doubt::Changeable { path: path.to_owned(), how }),
        None => Ok(()),
    }
}

/// Checks a path and every folder above it.
pub(crate) fn check_chain(path: &Path) -> Result<(), Doubt> {
    path.ancestors().try_for_each(check)
}

/// Who could change a file with this owner and mode, if that is somebody else than those who are trusted.
fn suspicion(owner: u32, mode: u32, trusted: &[u32]) -> Option<String> {
    const EVERYBODY_WRITES: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let kind = mode & libc::S_IFMT;
    if !trusted.contains(&owner) {
        return Some(format!("belongs to user {owner}"));
    }
    let sticky_folder = kind == libc::S_IFDIR && mode & STICKY != 0;
    if kind != libc::S_IFLNK && mode & EVERYBODY_WRITES != 0 && !sticky_folder {
        return Some("can be written by every user of this machine".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_and_the_caller_are_trusted() {
        assert_eq!(suspicion(0, libc::S_IFREG | 0o755, &[0, 1000]), None);
        assert_eq!(suspicion(1000, libc::S_IFREG | 0o755, &[0, 1000]), None);
        assert!(suspicion(1001, libc::S_IFREG | 0o755, &[0, 1000]).is_some());
        assert!(suspicion(1000, libc::S_IFREG | 0o755, &[0]).is_some(), "root runs nobody else's program");
    }

    #[test]
    fn what_everybody_may_write_is_refused_unless_it_is_a_sticky_folder_or_a_link() {
        assert!(suspicion(0, libc::S_IFREG | 0o777, &[0]).is_some());
        assert!(suspicion(0, libc::S_IFREG | 0o1777, &[0]).is_some());
        assert!(suspicion(0, libc::S_IFDIR | 0o777, &[0]).is_some());
        assert_eq!(suspicion(0, libc::S_IFDIR | 0o1777, &[0]), None);
        assert_eq!(suspicion(0, libc::S_IFLNK | 0o777, &[0]), None);
        assert_eq!(suspicion(0, libc::S_IFDIR | 0o775, &[0]), None);
    }

    #[test]
    fn links_are_followed_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        std::os::unix::fs::symlink("real/../real", root.join("link")).unwrap();
        std::os::unix::fs::symlink("round", root.join("round")).unwrap();
        let way = walk(&root.join("link/deep")).unwrap();
        assert_eq!(way.real, root.join("real/deep"));
        assert_eq!(way.passed.first(), Some(&PathBuf::from("/")));
        for passed in ["link", "real", "real/deep"] {
            assert!(way.passed.contains(&root.join(passed)), "{passed}: {way:?}");
        }
        assert!(walk(&root.join("round")).is_err());
        assert!(walk(&root.join("nowhere")).is_err());
    }
}
