//! Wakes, and those between the processes of one machine: an empty datagram to every socket in a folder.
//!
//! A wake is a hint and never the data. Whoever is woken reads the store; whoever missed the wake polls.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_core::NodeId;
use rustix::fs::{Mode, OFlags};
use tokio::net::UnixDatagram;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Counts the wakes that have come. Whoever waits watches the count.
#[derive(Debug)]
pub struct Wakes {
    count: watch::Receiver<u64>,
    /// Kept so that somebody listens.
    _source: Arc<WakeSource>,
}

/// Somebody who counts wakes, until it is dropped.
#[derive(Debug)]
pub(crate) struct WakeSource {
    /// Kept so that the count never closes where nobody listens.
    sender: Arc<watch::Sender<u64>>,
    listening: Option<JoinHandle<()>>,
}

impl WakeSource {
    /// Counts what this task tells; nothing, without one. Must be called within a tokio runtime.
    pub(crate) fn of<Task: Future<Output = ()> + Send + 'static>(
        listen: Option<impl FnOnce(Arc<watch::Sender<u64>>) -> Task>,
    ) -> Self {
        let sender = Arc::new(watch::Sender::new(0));
        let listening = listen.map(|listen| tokio::spawn(listen(Arc::clone(&sender))));
        Self { sender, listening }
    }
}

impl Drop for WakeSource {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}

impl Wakes {
    pub(crate) fn of_folder(folder: &Path, name: &NodeId) -> Self {
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let listen = WakeListener::register(folder, name).ok().map(|listener| {
            async move |sender: Arc<watch::Sender<u64>>| {
                while listener.wait().await.is_ok() {
                    sender.send_modify(|count| *count += 1);
                }
            }
        });
        Self::from_source(Arc::new(WakeSource::of(listen)))
    }

    pub(crate) fn from_source(source: Arc<WakeSource>) -> Self {
        Self { count: source.sender.subscribe(), _source: source }
    }

    /// The count. It never closes as long as this is kept.
    #[must_use]
    pub fn count(&self) -> watch::Receiver<u64> {
        self.count.clone()
    }
}

/// A process that wants to be woken. Its socket goes when it is dropped.
#[derive(Debug)]
pub struct WakeListener {
    socket: UnixDatagram,
    folder: OwnedFd,
    name: String,
}

impl WakeListener {
    /// Makes the socket `<folder>/<node>.sock`. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the folder cannot be opened or the socket not be made.
    pub fn register(folder: &Path, node: &NodeId) -> io::Result<Self> {
        let folder = open_folder(folder)?;
        let name = format!("{node}.sock");
        // Bound under another name first: between the making of the file and the end of the bind a
        // sender would find it dead and remove it, and others could open it before its mode is set.
        let unready = within(&folder, format!("{node}.binding"));
        remove_if_there(&unready)?;
        let socket = UnixDatagram::bind(&unready)?;
        std::fs::set_permissions(&unready, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&unready, within(&folder, &name))?;
        Ok(Self { socket, folder, name })
    }

    /// Waits for the next wake. Those that came meanwhile count as one.
    ///
    /// # Errors
    /// If the socket fails.
    pub async fn wait(&self) -> io::Result<()> {
        self.socket.recv(&mut [0; 1]).await?;
        while self.socket.try_recv(&mut [0; 1]).is_ok() {}
        Ok(())
    }
}

impl Drop for WakeListener {
    fn drop(&mut self) {
        // A socket that stays behind is removed by the next sender, who finds it dead.
        let _ = std::fs::remove_file(within(&self.folder, &self.name));
    }
}

/// Wakes every process that has a socket in the folder, and removes the sockets of dead ones. Never waits.
///
/// # Errors
/// If the folder cannot be read. A socket that cannot take the wake is no error.
pub fn wake_all(folder: &Path) -> io::Result<()> {
    let opened = open_folder(folder)?;
    let sender = std::os::unix::net::UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !name.as_bytes().ends_with(b".sock") {
            continue;
        }
        let path = within(&opened, &name);
        match sender.send_to(&[], &path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => remove_if_there(&path)?,
            // A full queue means that it has wakes to read; anything else is left to polling.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// A socket's address has room for 107 bytes; through the open folder the path is always short enough.
fn within(folder: &OwnedFd, name: impl AsRef<Path>) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "wake_tests.rs"]
mod tests;
