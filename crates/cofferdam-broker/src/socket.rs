//! The Unix sockets of an attempt.
//!
//! A socket's address holds 107 bytes, and a state folder deep in a home directory is longer. So the folder is
//! opened, and the socket is addressed through the descriptor.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// The name under which a socket is made before it has its own.
const UNFINISHED: &str = "new.sock";

/// Connects to a socket of an attempt from outside its sandbox.
///
/// # Errors
/// Nobody listens there.
pub async fn connect(folder: &Path, name: &str) -> io::Result<UnixStream> {
    let folder = File::open(folder)?;
    UnixStream::connect(short_path(&folder, name)).await
}

/// A path that fits a socket's address while the folder is open.
fn short_path(folder: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

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
        let listener = UnixListener::bind(short_path(&File::open(folder)?, UNFINISHED))?;
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
    async fn a_socket_may_be_deeper_than_its_address_is_long() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a-folder-of-a-long-name".repeat(8));
        std::fs::create_dir(&folder).unwrap();
        let socket = Socket::listen(&folder, "egress.sock").unwrap();
        let (client, server) = tokio::join!(connect(&folder, "egress.sock"), socket.listener.accept());
        assert!(client.is_ok() && server.is_ok());
        socket.path.remove();
        assert!(connect(&folder, "egress.sock").await.is_err());
    }
}
