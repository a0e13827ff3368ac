//! How much an agent has written.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, openat, statat};
use rustix::io::Errno;

use super::unnamed;
use crate::remove::open_folder;

/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(250);
/// The longest: a limit must be noticed soon even in a tree that takes long to sum up.
const LONGEST: Duration = Duration::from_millis(1_500);
/// How deep folders are followed, each with a descriptor. A deeper tree counts as over the limit: it can
/// only be an attempt to hide something.
const DEEPEST: u32 = 256;
/// What any file costs, an empty one too: a host runs out of inodes as it does of blocks.
const LEAST_FILE_BYTES: u64 = 4096;

/// Sums up what is written below some folders, at most a tenth of the time.
pub(super) struct DiskWatch {
    folders: Vec<PathBuf>,
    limit_bytes: u64,
    next: Instant,
}

impl DiskWatch {
    pub(super) fn new(folders: Vec<PathBuf>, limit_bytes: u64, now: Instant) -> Self {
        Self { folders, limit_bytes, next: now + SHORTEST }
    }

    pub(super) fn next_check(&self) -> Instant {
        self.next
    }

    /// Whether more was written than may be, also to files that have no name any more and that only the
    /// descendants of `child` hold, once that is known. Looks only when it is time to.
    pub(super) fn is_over(&mut self, now: Instant, child: Option<i32>) -> bool {
        if now < self.next {
            return false;
        }
        let before = Instant::now();
        let used = self.named_bytes().saturating_add(child.map_or(0, unnamed::disk_bytes));
        let pause = (before.elapsed() * 10).clamp(SHORTEST, LONGEST);
        self.next = now + before.elapsed() + pause;
        used > self.limit_bytes
    }

    /// The same at the very end: what was written since the last look counts as well.
    pub(super) fn is_over_at_the_end(&self) -> bool {
        self.named_bytes() > self.limit_bytes
    }

    fn named_bytes(&self) -> u64 {
        bytes_in(&self.folders)
    }
}

/// How much is below these folders. What is there before an agent starts is not the agent's: a workspace that is a copy
/// starts full.
#[must_use]
pub fn bytes_in(folders: &[PathBuf]) -> u64 {
    let open = |path: &PathBuf| {
        openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    };
    let mut total: u64 = 0;
    for folder in folders.iter().filter_map(|path| open(path).ok()) {
        total = total.saturating_add(sum(&folder, 0));
    }
    total
}

/// Symbolic links are never followed: one that the agent swaps in while we look must not lead us out.
fn sum(folder: &OwnedFd, depth: u32) -> u64 {
    if depth > DEEPEST {
        return u64::MAX;
    }
    let mut buffer = Vec::with_capacity(8 << 10);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut total: u64 = 0;
    while let Some(Ok(entry)) = entries.next() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        total = total.saturating_add(cost(&stat));
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            total = total.saturating_add(sum_below(folder, name, depth));
        }
    }
    total
}

fn cost(stat: &Stat) -> u64 {
    (stat.st_blocks as u64).saturating_mul(512).max(LEAST_FILE_BYTES)
}

fn sum_below(folder: &OwnedFd, name: &OsStr, depth: u32) -> u64 {
    match open_folder(folder, name) {
        Ok(below) => sum(&below, depth + 1),
        // What cannot be looked into for want of descriptors could hide any amount.
        Err(Errno::MFILE | Errno::NFILE) => u64::MAX,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_starts_full_may_still_be_written() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("copied"), vec![1; 300_000]).unwrap();
        let now = Instant::now();
        let folders = vec![root.path().to_owned()];
        let watch = DiskWatch::new(folders.clone(), 200_000 + bytes_in(&folders), now);
        assert!(!watch.is_over_at_the_end());
        std::fs::write(root.path().join("written"), vec![1; 300_000]).unwrap();
        assert!(watch.is_over_at_the_end());
    }

    #[test]
    fn what_is_written_below_is_summed_up_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("big"), vec![1; 300_000]).unwrap();
        std::os::unix::fs::symlink("/usr", root.path().join("usr")).unwrap();
        let now = Instant::now();
        let own = Some(std::process::id().cast_signed());
        let mut small = DiskWatch::new(vec![root.path().to_owned()], 200_000, now);
        assert!(!small.is_over(now, own), "it is not time to look yet");
        assert!(small.is_over(now + SHORTEST, own));
        let mut large = DiskWatch::new(vec![root.path().to_owned()], 2_000_000, now);
        assert!(!large.is_over(now + SHORTEST, own));
    }

    #[test]
    fn nobodys_files_without_a_name_count_before_the_first_process_is_known() {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        std::io::Write::write_all(&mut file, &vec![7; 8 << 20]).unwrap();
        let root = tempfile::tempdir().unwrap();
        let now = Instant::now();
        let mut watch = DiskWatch::new(vec![root.path().to_owned()], 1 << 20, now);
        assert!(!watch.is_over(now + SHORTEST, None));
    }

    fn watch(root: &std::path::Path, limit_bytes: u64) -> bool {
        let now = Instant::now();
        DiskWatch::new(vec![root.to_owned()], limit_bytes, now)
            .is_over(now + SHORTEST, Some(std::process::id().cast_signed()))
    }

    #[test]
    fn empty_files_cost_what_their_inodes_do() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..100 {
            std::fs::write(root.path().join(number.to_string()), "").unwrap();
        }
        assert!(watch(root.path(), 300_000));
        assert!(!watch(root.path(), 1_000_000));
    }

    #[test]
    fn a_tree_that_is_too_deep_to_look_into_is_over_the_limit() {
        let root = tempfile::tempdir().unwrap();
        let mut at = rustix::fs::open(root.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        for _ in 0..1_000 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = openat(&at, "d", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        }
        assert!(watch(root.path(), 1 << 40));
        crate::remove_tree(&root.path().join("d")).unwrap();
    }
}
