//! How much an agent has written.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cofferdam_core::LimitHit;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, openat, statat};
use rustix::io::Errno;

use super::processes::Process;
use super::survey::{Budget, Looked};
use super::unnamed::{Found, add_disk};
use crate::remove::open_folder;

/// How long it may take to walk over the folders. There are as many files as the limit has room for, so that this is
/// for machines that are slow and not for agents.
const LONGEST_WALK: Duration = Duration::from_secs(60);
/// How deep folders are followed, each with a descriptor. A deeper tree counts as over the limit: it can
/// only be an attempt to hide something.
const DEEPEST: u32 = 256;
/// What any file costs, an empty one too: a host runs out of inodes as it does of blocks.
const LEAST_FILE_BYTES: u64 = 4096;

/// What an agent has written, and may.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) folders: Vec<PathBuf>,
    pub(super) limit_bytes: u64,
}

impl Disk {
    /// Whether more was written than may be, also to files that have no name any more and that only the
    /// descendants of `ancestor` hold, once that is known.
    pub(super) fn look(&self, ancestor: Option<i32>) -> Looked {
        let named = match self.walk(Some(Instant::now() + LONGEST_WALK)) {
            Ok(named) => named,
            Err(Stop::Over) => return Looked::Over,
            Err(Stop::Late) => return Looked::Unfinished,
        };
        let (mut unnamed, mut budget) = (Found::default(), Budget::of_a_look());
        let finished = ancestor.map_or(Ok(()), |ancestor| {
            let processes = Process::below(ancestor, &mut budget)?;
            add_disk(&processes, &mut unnamed, &mut budget)
        });
        Looked::of(named.saturating_add(unnamed.bytes()), self.limit_bytes, finished)
    }

    /// The same at the very end, when nobody holds anything: what was written since the last look counts as well. It costs no more
    /// than any look, since the run's end waits for it. The attack: millions of empty files, so that a run that is over does not end.
    pub(super) fn look_at_the_end(&self) -> Option<LimitHit> {
        self.look_until(Instant::now() + LONGEST_WALK)
    }

    fn look_until(&self, until: Instant) -> Option<LimitHit> {
        match self.walk(Some(until)) {
            Ok(_) => None,
            Err(Stop::Over) => Some(LimitHit::Disk),
            // There is no second look, and what was not looked at may be any amount.
            Err(Stop::Late) => Some(LimitHit::DiskUnmeasured),
        }
    }

    fn walk(&self, until: Option<Instant>) -> Result<u64, Stop> {
        let mut walk = Walk { bytes: 0, most: self.limit_bytes, until };
        walk.over_all(&self.folders)?;
        Ok(walk.bytes)
    }
}

/// Whether no more than this is in a folder that an agent has written. One that cannot be looked at whole, or not in time, may hold
/// any amount.
#[must_use]
pub fn holds_at_most(folder: &Path, most: u64) -> bool {
    let mut walk = Walk { bytes: 0, most, until: Some(Instant::now() + LONGEST_WALK) };
    walk.over_all(&[folder.to_owned()]).is_ok()
}

/// What is in these folders before an agent starts, which is not the agent's: a workspace that is a copy starts full. What cannot
/// be looked at is no reason to give more. The attack: an agent leaves a tree in its own folder that is too deep to follow, and
/// its next run removes it and writes as much as it likes.
pub(crate) fn bytes_before(folders: &[PathBuf]) -> u64 {
    let mut walk = Walk { bytes: 0, most: u64::MAX, until: None };
    walk.over_all(folders).map_or(0, |()| walk.bytes)
}

/// A sum over files that stops as soon as it is too large.
struct Walk {
    bytes: u64,
    most: u64,
    until: Option<Instant>,
}

/// Why a walk was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Over,
    Late,
}

impl Walk {
    fn over_all(&mut self, folders: &[PathBuf]) -> Result<(), Stop> {
        let open = |path: &PathBuf| {
            openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        };
        folders.iter().filter_map(|path| open(path).ok()).try_for_each(|folder| self.over(&folder, 0))
    }

    /// Symbolic links are never followed: one that the agent swaps in while we look must not lead us out.
    fn over(&mut self, folder: &OwnedFd, depth: u32) -> Result<(), Stop> {
        if depth > DEEPEST {
            return Err(Stop::Over);
        }
        let mut buffer = Vec::with_capacity(8 << 10);
        let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
        while let Some(Ok(entry)) = entries.next() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            self.add(&stat)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                self.over_below(folder, name, depth)?;
            }
        }
        Ok(())
    }

    fn over_below(&mut self, folder: &OwnedFd, name: &OsStr, depth: u32) -> Result<(), Stop> {
        match open_folder(folder, name) {
            Ok(below) => self.over(&below, depth + 1),
            // What cannot be looked into for want of descriptors could hide any amount.
            Err(Errno::MFILE | Errno::NFILE) => Err(Stop::Over),
            Err(_) => Ok(()),
        }
    }

    fn add(&mut self, stat: &Stat) -> Result<(), Stop> {
        let cost = (stat.st_blocks as u64).saturating_mul(512).max(LEAST_FILE_BYTES);
        self.bytes = self.bytes.saturating_add(cost);
        if self.bytes > self.most {
            return Err(Stop::Over);
        }
        if self.until.is_some_and(|until| Instant::now() >= until) { Err(Stop::Late) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(root: &Path, limit_bytes: u64) -> Disk {
        Disk { folders: vec![root.to_owned()], limit_bytes }
    }

    fn look(root: &Path, limit_bytes: u64) -> Looked {
        disk(root, limit_bytes).look(Some(std::process::id().cast_signed()))
    }

    #[test]
    fn a_copy_that_starts_full_may_still_be_written() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("copied"), vec![1; 300_000]).unwrap();
        let disk = disk(root.path(), 200_000 + bytes_before(&[root.path().to_owned()]));
        assert_eq!(disk.look_at_the_end(), None);
        std::fs::write(root.path().join("written"), vec![1; 300_000]).unwrap();
        assert_eq!(disk.look_at_the_end(), Some(LimitHit::Disk));
    }

    #[test]
    fn what_is_written_below_is_summed_up_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("big"), vec![1; 300_000]).unwrap();
        std::os::unix::fs::symlink("/usr", root.path().join("usr")).unwrap();
        assert_eq!(look(root.path(), 200_000), Looked::Over);
        assert_eq!(look(root.path(), 2_000_000), Looked::Within);
    }

    #[test]
    fn nobodys_files_without_a_name_count_before_the_first_process_is_known() {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        std::io::Write::write_all(&mut file, &vec![7; 8 << 20]).unwrap();
        let root = tempfile::tempdir().unwrap();
        assert_eq!(disk(root.path(), 1 << 20).look(None), Looked::Within);
    }

    #[test]
    fn a_walk_ends_when_its_time_is_up() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        let disk = disk(root.path(), 1 << 20);
        assert_eq!(disk.walk(Some(Instant::now())), Err(Stop::Late));
        assert_eq!(disk.walk(None), Ok(4096));
        // The last look has no other after it.
        assert_eq!(disk.look_until(Instant::now()), Some(LimitHit::DiskUnmeasured));
        assert_eq!(disk.look_at_the_end(), None);
    }

    #[test]
    fn empty_files_cost_what_their_inodes_do() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..100 {
            std::fs::write(root.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(look(root.path(), 300_000), Looked::Over);
        assert_eq!(look(root.path(), 1_000_000), Looked::Within);
    }

    #[test]
    fn a_tree_that_is_too_deep_to_look_into_is_over_the_limit() {
        let root = tempfile::tempdir().unwrap();
        let mut at = rustix::fs::open(root.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        for _ in 0..1_000 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = openat(&at, "d", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        }
        assert_eq!(look(root.path(), 1 << 40), Looked::Over);
        let folders = [root.path().to_owned()];
        assert_eq!(bytes_before(&folders), 0, "it gives no room to its next run");
        assert!(!holds_at_most(root.path(), u64::MAX));
        assert_eq!(disk(root.path(), 1 << 40).look_at_the_end(), Some(LimitHit::Disk));
        crate::remove_tree(&root.path().join("d")).unwrap();
    }
}
