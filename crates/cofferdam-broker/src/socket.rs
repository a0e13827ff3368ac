//! The Unix sockets of an attempt.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// The name under which a socket is made before it has its own.
const UNFINISHED: &str = "new.sock";

/// A socket that takes connections.
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    pub(crate) path: SocketPath,
}

/// The file of a socket.
#[derive(Debug, Clone)]
pub(crate) struct SocketPath {
    path: PathBuf,
    inode: u64,
}

impl Socket {
    /// Listens at a path. A socket that a former broker left there is replaced in one step, so that a client
    /// finds one or the other and never none.
    pub(crate) fn listen(folder: &Path, name: &str) -> io::Result<Self> {
        let unfinished = folder.join(UNFINISHED);
        match std::fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // A socket's path has an end at 108 bytes, and a state folder may be anywhere.
        let opened = std::fs::File::open(folder)?;
        let short = format!("/proc/self/fd/{}/{UNFINISHED}", opened.as_raw_fd());
        let listener = UnixListener::bind(short)?;
        // The folders above are for their owner only; in a sandbox made by root the agent is somebody else.
        std::fs::set_permissions(&unfinished, std::fs::Permissions::from_mode(0o666))?;
        let inode = std::fs::symlink_metadata(&unfinished)?.ino();
        let path = folder.join(name);
        std::fs::rename(&unfinished, &path)?;
        Ok(Self { listener, path: SocketPath { path, inode } })
    }
}

impl SocketPath {
    /// Removes the file, unless a newer broker has put its own there.
    pub(crate) fn remove(&self) {
        let is_ours =
            std::fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode);
        if is_ours && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "failed to remove a socket");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_may_be_below_a_long_path() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a-long-name".repeat(12));
        std::fs::create_dir(&folder).unwrap();
        let socket = Socket::listen(&folder, "egress.sock").unwrap();
        let opened = std::fs::File::open(&folder).unwrap();
        let short = format!("/proc/self/fd/{}/egress.sock", opened.as_raw_fd());
        let (connected, accepted) =
            tokio::join!(tokio::net::UnixStream::connect(short), socket.listener.accept());
        assert!(connected.is_ok() && accepted.is_ok());
        socket.path.remove();
        assert!(!folder.join("egress.sock").exists());
    }
}
