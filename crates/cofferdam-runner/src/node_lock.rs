//! The lock by which the processes of this machine know whether a node lives.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_core::NodeId;
use cofferdam_store::wake_all;
use rustix::fs::{FlockOperation, flock};

use crate::home::Home;

/// The file that a living node has locked.
pub(crate) fn lock_path(home: &Home, id: &NodeId) -> PathBuf {
    home.nodes().join(format!("{id}.lock"))
}

/// Locks a node's file. Whoever looks whether a node lives holds its lock for a moment, and whoever finds it
/// dead removes the file: so this tries for a while, and makes sure that what it locked is still there.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    const TRIES: u32 = 100;
    for attempt in 0.. {
        let lock = File::options().create(true).truncate(false).write(true).open(path)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if is_at(&lock, path) => return Ok(lock),
            Ok(()) => {}
            Err(error) if attempt == TRIES => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    unreachable!("the last try returns")
}

fn is_at(file: &File, path: &Path) -> bool {
    let same = |found: fs::Metadata| Ok(found.ino() == file.metadata()?.ino());
    fs::metadata(path).and_then(same).unwrap_or(false)
}

/// Whether a node of this machine lives. A lease says until when a node *may* write; this says at once
/// that it is dead, so that nobody waits for a lease to expire.
#[must_use]
pub fn is_alive(home: &Home, id: &NodeId) -> bool {
    let Ok(lock) = File::options().write(true).open(lock_path(home, id)) else { return false };
    flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()
}

/// Removes the locks and the sockets of nodes that are dead.
pub(crate) fn forget_dead(home: &Home) -> io::Result<()> {
    // A socket that nobody has is removed by whoever wakes it. One without a lock may be that of a reader: not every
    // process that wants to be woken is a node.
    wake_all(&home.nodes())?;
    for entry in fs::read_dir(home.nodes())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sock" || extension == "reader") {
            continue;
        }
        let id = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let Some(id) = id {
            forget(home, &id, &path)?;
        }
    }
    Ok(())
}

/// Removes a file of a node if that node is dead. Its lock is held meanwhile, so that a node that starts
/// under the same name just now loses nothing.
fn forget(home: &Home, id: &NodeId, path: &Path) -> io::Result<()> {
    let lock_path = lock_path(home, id);
    // Without a lock there is no node, and a node that starts locks before it makes its socket.
    let lock = match File::options().write(true).open(&lock_path) {
        Ok(lock) => Some(lock),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let is_alive = lock.as_ref().is_some_and(|lock| {
        flock(lock, FlockOperation::NonBlockingLockExclusive).is_err() || !is_at(lock, &lock_path)
    });
    if is_alive {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
