//! Whose a repository is, and what it may lead to: what belongs to the same owner.
//!
//! A repository names other places, by `alternates`, a `.git` file, a `commondir`, or a link in the place of a file of its
//! own. Whoever may write it chooses them; whoever prepares it follows them, with rights of their own. The attack: a user
//! whose repository is run by root names root's objects, and finds them in the sandbox. So what is followed must belong to
//! the repository's owner. Root's own counts too where an ordinary user asks, who gets no further than the kernel lets them;
//! never where root asks, who may read everything.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::confined::{ConfinedFolder, is_absent, kind_of};

/// The owner of a repository, as somebody asks who may be another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RepositoryOwner {
    uid: u32,
    gid: u32,
    root_asks: bool,
}

impl RepositoryOwner {
    /// The owner of the folder at a path without symlinks.
    pub(crate) fn of(root: &Path) -> io::Result<Self> {
        let stat = ConfinedFolder::open_exactly(root)?.stat(Path::new("."))?;
        let stat = stat.ok_or(io::ErrorKind::NotFound)?;
        let root_asks = rustix::process::geteuid().is_root();
        Ok(Self { uid: stat.st_uid, gid: stat.st_gid, root_asks })
    }

    /// Opens a regular file of the repository; `None` if there is none, or if it is something else. If a link leads to
    /// it, it must be the owner's.
    pub(crate) fn open(self, path: &Path) -> io::Result<Option<File>> {
        // Looked at before it is opened: a pipe would block, and a device do whatever it does.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        let (found, is_followed) = match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
            Err(Errno::LOOP) => (rustix::fs::openat(CWD, path, flags, Mode::empty()), true),
            found => (found, false),
        };
        let found = match found {
            Ok(found) => found,
            Err(error) if is_absent(&error.into()) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let stat = rustix::fs::fstat(&found)?;
        if kind_of(&stat) != FileType::RegularFile || (is_followed && !self.may_follow(stat.st_uid)) {
            return Ok(None);
        }
        // The file that was looked at, whatever is at its path by now.
        File::open(format!("/proc/self/fd/{}", found.as_raw_fd())).map(Some)
    }

    /// The beginning of such a file.
    pub(crate) fn read(self, path: &Path, limit: u64) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        self.open(path).ok()??.take(limit).read_to_end(&mut content).ok()?;
        Some(content)
    }

    /// Whether a folder, whose path has no symlinks, may be followed.
    pub(crate) fn may_follow_to(self, folder: &Path) -> bool {
        folder.symlink_metadata().is_ok_and(|found| found.is_dir() && self.may_follow(found.uid()))
    }

    fn may_follow(self, uid: u32) -> bool {
        uid == self.uid || (uid == 0 && !self.root_asks)
    }

    /// Whether the owner may read a file or folder inside the repository, as far as its mode tells. Only root has to ask:
    /// whoever else copies a file may read it.
    pub(crate) fn may_read(self, stat: &Stat) -> bool {
        if !self.root_asks || self.uid == 0 || stat.st_uid == self.uid {
            return true;
        }
        let bits = if stat.st_gid == self.gid { stat.st_mode >> 3 } else { stat.st_mode };
        match kind_of(stat) {
            FileType::Symlink => true,
            FileType::Directory => bits & 0o5 == 0o5,
            _ => bits & 0o4 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    const SOMEBODY: u32 = 12345;

    /// A folder of root's and one of somebody's; `None` where only root could make them.
    fn place() -> Option<tempfile::TempDir> {
        let place = tempfile::tempdir().unwrap();
        for name in ["theirs", "roots"] {
            fs::create_dir(place.path().join(name)).unwrap();
            fs::write(place.path().join(name).join("file"), name).unwrap();
        }
        for name in ["theirs", "theirs/file"] {
            chown(place.path().join(name), Some(SOMEBODY), Some(SOMEBODY)).ok()?;
        }
        Some(place)
    }

    #[test]
    fn for_root_only_what_is_the_owners_is_followed() {
        let Some(place) = place() else {
            return println!("skipped: needs root to make files of several owners");
        };
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        symlink(at("roots/file"), at("theirs/link")).unwrap();
        symlink("file", at("theirs/own-link")).unwrap();
        let (theirs, roots) =
            (RepositoryOwner::of(&at("theirs")).unwrap(), RepositoryOwner::of(&at("roots")).unwrap());
        assert_eq!(theirs.read(&at("theirs/file"), 100).as_deref(), Some(&b"theirs"[..]));
        assert_eq!(theirs.read(&at("theirs/own-link"), 100).as_deref(), Some(&b"theirs"[..]));
        assert_eq!(theirs.read(&at("theirs/link"), 100), None, "it is root's");
        fs::write(at("theirs/left-by-sudo"), "roots").unwrap();
        assert!(theirs.read(&at("theirs/left-by-sudo"), 100).is_some(), "no link leads to it");
        assert_eq!(
            roots.read(&at("theirs/link"), 100).as_deref(),
            Some(&b"roots"[..]),
            "root's own follows root's"
        );
        assert!(theirs.may_follow_to(&at("theirs")) && !theirs.may_follow_to(&at("roots")));
        let asked_by_another = RepositoryOwner { root_asks: false, ..theirs };
        assert!(asked_by_another.may_follow_to(&at("roots")), "the kernel holds an ordinary user");
        let of_a_third = RepositoryOwner { uid: SOMEBODY + 1, ..asked_by_another };
        assert!(!of_a_third.may_follow_to(&at("theirs")));
    }

    #[test]
    fn what_the_owner_could_not_read_is_not_read_for_them() {
        let Some(place) = place() else {
            return println!("skipped: needs root to make files of several owners");
        };
        let owner = RepositoryOwner::of(&place.path().canonicalize().unwrap().join("theirs")).unwrap();
        let file = place.path().join("roots/file");
        let readable = |mode: u32, gid: u32| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            chown(&file, None, Some(gid)).unwrap();
            owner.may_read(&rustix::fs::stat(&file).unwrap())
        };
        assert!(readable(0o644, 0) && readable(0o640, SOMEBODY));
        assert!(!readable(0o600, 0) && !readable(0o640, 0) && !readable(0o604, SOMEBODY));
    }

    #[test]
    fn pipes_links_in_a_circle_and_nothing_are_no_files() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let owner = RepositoryOwner::of(&root).unwrap();
        rustix::fs::mkfifoat(CWD, root.join("fifo"), Mode::RWXU).unwrap();
        symlink("round", root.join("round")).unwrap();
        symlink(&root, root.join("up")).unwrap();
        for name in ["fifo", "round", "nowhere", "up"] {
            assert!(owner.open(&root.join(name)).unwrap().is_none(), "{name}");
        }
        assert!(RepositoryOwner::of(&root.join("up")).is_err(), "a root has no symlinks");
    }
}
