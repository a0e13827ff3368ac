//! Waiting for a file to appear in a folder, without looking again and again.

use std::io;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Names that are given to files in a folder by renaming them: a socket gets its own only once it takes connections.
pub(super) struct Arrivals(pipe::Receiver);

impl Arrivals {
    /// Watches from now on. The kernel gives a user only so many watchers.
    pub(super) fn in_folder(folder: &Path) -> io::Result<Self> {
        let watcher = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&watcher, folder, WatchFlags::MOVED_TO)?;
        // It is no pipe, and is waited for and read as one.
        Ok(Self(pipe::Receiver::from_owned_fd_unchecked(watcher)?))
    }

    /// Returns when something has arrived since the last time. What, is for whoever connects to find out.
    pub(super) async fn next(&mut self) -> io::Result<()> {
        let mut told = [0_u8; 4096];
        self.0.read(&mut told).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_file_that_gets_its_name_is_seen_and_one_that_is_only_made_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut arrivals = Arrivals::in_folder(folder.path()).unwrap();
        fs::write(folder.path().join("new.sock"), "").unwrap();
        tokio::select! {
            biased;
            seen = arrivals.next() => panic!("{seen:?}"),
            () = tokio::task::yield_now() => {}
        }
        fs::rename(folder.path().join("new.sock"), folder.path().join("egress.sock")).unwrap();
        arrivals.next().await.unwrap();
    }
}
