//! The mark that a broker leaves while it finishes calls for a successor that listens already.
//!
//! It is a locked file beside the attempt's sockets. A broker that comes to its end removes it; one that is killed drops
//! the lock, and then the successor knows that calls were cut.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use cofferdam_core::{AttemptRef, SandboxId};
use rustix::fs::{FlockOperation, flock};

use crate::home::Home;

/// Calls of one attempt that are being finished.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
    _lock: File,
}

impl Mark {
    /// Marks an attempt. Its folder is there as long as the attempt is.
    pub(super) fn set(home: &Home, attempt: &AttemptRef) -> io::Result<Self> {
        let path = path(home, attempt);
        let lock = File::options().create(true).truncate(false).write(true).open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }

    /// Takes the mark away: nothing was cut.
    pub(super) fn remove(self) {
        // It goes with the folder otherwise.
        let _ = fs::remove_file(self.path);
    }

    /// Whether a broker was killed while it finished calls of this attempt. True once.
    pub(super) fn was_left(home: &Home, attempt: &AttemptRef) -> bool {
        let path = path(home, attempt);
        let Ok(lock) = File::options().write(true).open(&path) else { return false };
        let is_free = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        is_free && fs::remove_file(path).is_ok()
    }
}

fn path(home: &Home, attempt: &AttemptRef) -> PathBuf {
    home.workspaces().join(SandboxId::of(attempt).to_string()).join("handing-over")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::RunId;

    #[test]
    fn only_a_broker_that_was_killed_leaves_a_mark() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let attempt = AttemptRef { run: RunId::new(1, 1), number: 1 };
        fs::create_dir(home.workspaces().join(SandboxId::of(&attempt).to_string())).unwrap();
        let left = || Mark::was_left(&home, &attempt);
        assert!(!left());
        let mark = Mark::set(&home, &attempt).unwrap();
        assert!(!left(), "it is still at it");
        mark.remove();
        assert!(!left());
        drop(Mark::set(&home, &attempt).unwrap());
        assert!(left() && !left());
    }
}
