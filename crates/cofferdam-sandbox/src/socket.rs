//! Unix sockets at paths of any length.
//!
//! A socket's address holds 107 bytes, and a state folder deep in a home directory is longer. So the
//! folder is opened, and the socket is addressed through the descriptor.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// A path that fits a socket's address while the descriptor is open.
fn short_path(folder: &Path, name: &str) -> io::Result<(OwnedFd, PathBuf)> {
    let folder = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()));
    Ok((folder, path))
}

/// Listens at `name` in `folder`. The folder's mode keeps others out.
pub(crate) fn listen(folder: &Path, name: &str) -> io::Result<UnixListener> {
    let (_folder, path) = short_path(folder, name)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(path)
}

/// Connects to `name` in `folder`.
pub(crate) fn connect(folder: &Path, name: &str) -> io::Result<UnixStream> {
    let (_folder, path) = short_path(folder, name)?;
    UnixStream::connect(path)
}
