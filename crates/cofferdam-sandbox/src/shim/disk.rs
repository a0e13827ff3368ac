//! How much an agent has written.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};

/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(250);
/// The longest: a limit must be noticed soon even in a tree that takes long to sum up.
const LONGEST: Duration = Duration::from_millis(1_500);
/// How deep folders are followed. A deeper tree counts as over the limit: it can only be an attempt to
/// hide something.
const DEEPEST: u32 = 512;

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

    /// Whether more was written than may be. Looks only when it is time to.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        let before = Instant::now();
        let used = self.used_bytes();
        let pause = (before.elapsed() * 10).clamp(SHORTEST, LONGEST);
        self.next = now + before.elapsed() + pause;
        used > self.limit_bytes
    }

    /// The same at the very end: what was written since the last look counts as well.
    pub(super) fn is_over_at_the_end(&self) -> bool {
        self.used_bytes() > self.limit_bytes
    }

    fn used_bytes(&self) -> u64 {
        let open = |path: &PathBuf| {
            openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        };
        let mut total: u64 = 0;
        for folder in self.folders.iter().filter_map(|path| open(path).ok()) {
            total = total.saturating_add(sum(&folder, 0));
        }
        total
    }
}

/// Symbolic links are never followed: one that the agent swaps in while we look must not lead us out.
fn sum(folder: &OwnedFd, depth: u32) -> u64 {
    if depth > DEEPEST {
        return u64::MAX;
    }
    let Ok(entries) = Dir::read_from(folder) else { return 0 };
    let mut total: u64 = 0;
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        total = total.saturating_add((stat.st_blocks as u64).saturating_mul(512));
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            total = total.saturating_add(sum_below(folder, name, stat.st_mode, depth));
        }
    }
    total
}

fn sum_below(folder: &OwnedFd, name: &OsStr, mode: u32, depth: u32) -> u64 {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(folder.as_fd(), name, flags, Mode::empty()) {
        Ok(below) => sum(&below, depth + 1),
        // A folder that its owner closed to itself could hide any amount. For an ordinary user's sandbox
        // the agent's files are ours too, so it can be opened again.
        Err(rustix::io::Errno::ACCESS) => {
            let open = Mode::from_raw_mode((mode & 0o7777) | 0o500);
            if rustix::fs::chmodat(folder.as_fd(), name, open, AtFlags::empty()).is_err() {
                return 0;
            }
            openat(folder.as_fd(), name, flags, Mode::empty()).map_or(0, |below| sum(&below, depth + 1))
        }
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_below_is_summed_up_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("big"), vec![1; 300_000]).unwrap();
        std::os::unix::fs::symlink("/usr", root.path().join("usr")).unwrap();
        let now = Instant::now();
        let mut small = DiskWatch::new(vec![root.path().to_owned()], 200_000, now);
        assert!(!small.is_over(now), "it is not time to look yet");
        assert!(small.is_over(now + SHORTEST));
        let mut large = DiskWatch::new(vec![root.path().to_owned()], 2_000_000, now);
        assert!(!large.is_over(now + SHORTEST));
    }
}
