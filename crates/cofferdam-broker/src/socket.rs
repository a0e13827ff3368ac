//! The Unix sockets of an attempt.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// The name under which a socket is made before it has its own. Not longer than any of those: a socket's path
/// has an end at 108 bytes.
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
        let listener = UnixListener::bind(&unfinished)?;
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
