//! Whether a container reaches a socket of this machine: what `sealed` rests on.
//!
//! The socket's folder is mounted either way. But an engine on another machine, in a virtual machine, or a runtime with
//! a kernel of its own shows the file and not who listens behind it. Nobody can be asked; so it is tried, once for
//! each engine and runtime.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use cofferdam_core::{gateway, inside};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;

use super::Bound;
use crate::backend::{Finding, Refusal};
use crate::local::Identity;
use crate::remove::remove_tree;
use crate::trials;

/// A container that takes longer is stuck.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);
/// What is said through the socket.
const WORD: &[u8] = b"cofferdam";

/// The side of a trial that listens. Its folder is removed with it.
pub(crate) struct SocketTrial {
    place: PathBuf,
    listener: UnixListener,
}

impl SocketTrial {
    pub(crate) fn new(state: &Path) -> io::Result<Self> {
        let place = trials::new_folder(state, "socket")?;
        let listener = crate::socket::listen(&place, gateway::SOCKET)?;
        fs::set_permissions(place.join(gateway::SOCKET), fs::Permissions::from_mode(0o666))?;
        listener.set_nonblocking(true)?;
        Ok(Self { place, listener: UnixListener::from_std(listener)? })
    }

    /// What the container is called.
    pub(crate) fn container(&self) -> String {
        format!("cofferdam-{}", self.place.file_name().unwrap_or_default().to_string_lossy())
    }

    /// Who tries.
    pub(crate) fn who() -> Identity {
        Identity { uid: inside::UID, gid: inside::UID, ids: None }
    }

    /// What the container is shown besides our binary.
    pub(crate) fn bound(&self) -> Bound {
        Bound::read_only(&self.place, inside::EGRESS)
    }

    /// The role and its argument, for our binary in the container.
    pub(crate) fn arguments() -> [String; 2] {
        ["try-socket".to_owned(), format!("{}/{}", inside::EGRESS, gateway::SOCKET)]
    }

    /// Says the word to whoever comes, until somebody cannot be heard.
    pub(crate) async fn serve(&self) -> io::Error {
        loop {
            match self.listener.accept().await {
                Ok((mut stream, _)) => {
                    let _ = stream.write_all(WORD).await;
                    let _ = stream.shutdown().await;
                }
                Err(error) => return error,
            }
        }
    }
}

impl Drop for SocketTrial {
    fn drop(&mut self) {
        let _ = remove_tree(&self.place);
    }
}

/// The role: connects to the socket that is named and passes on what it hears. 0 if it heard the word.
#[must_use]
pub fn try_socket_main(path: &Path) -> ExitCode {
    let heard = || -> io::Result<Vec<u8>> {
        let mut heard = vec![0; WORD.len()];
        UnixStream::connect(path)?.read_exact(&mut heard)?;
        Ok(heard)
    };
    match heard() {
        Ok(word) if word == WORD => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stdout(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// The mark of a trial that worked, by everything that it depends on.
pub(crate) struct Known(PathBuf);

impl Known {
    pub(crate) fn new(state: &Path, parts: &[&str]) -> Self {
        let parts: Vec<&str> = parts.iter().copied().chain([env!("CARGO_PKG_VERSION")]).collect();
        Self(state.join("engines").join(file_name_of(&parts)))
    }

    pub(crate) fn exists(&self) -> bool {
        self.0.exists()
    }

    /// It is tried again if this cannot be written.
    pub(crate) fn remember(&self) {
        let _ = self.0.parent().map(fs::create_dir_all);
        let _ = fs::write(&self.0, "");
    }
}

/// A name for a file about all of these.
pub(crate) fn file_name_of(parts: &[&str]) -> String {
    let plain = |text: &&str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
    };
    parts.iter().map(plain).collect::<Vec<_>>().join("_")
}

/// The finding `socket`.
pub(crate) fn socket(tried: Result<(), Refusal>) -> Finding {
    match tried {
        Ok(()) => Finding::ok("socket", "a container reaches the broker's socket: `sealed` works"),
        Err(refusal) => Finding::missing("socket", &refusal),
    }
}

/// Why such a container cannot be sealed.
pub(crate) fn unreachable_socket(whose: &str, why: &str) -> Refusal {
    Refusal::new(
        format!("a container of {whose} cannot reach the broker's socket, so it cannot be sealed: {why}"),
        "use --mode native or an engine of this machine (not in a virtual machine), or say --network open",
    )
}
