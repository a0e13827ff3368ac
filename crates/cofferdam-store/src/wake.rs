//! Wakes, and those between the processes of one machine: an empty datagram to every socket in a folder.
//!
//! A wake is a hint and never the data. Whoever is woken reads the store; whoever missed the wake polls. There are two
//! kinds: that there may be something to do is for everybody, and that a run has new events is for readers only. A node
//! with many runs would otherwise look at each of them whenever one of them says a line. A datagram that is not empty has
//! [`Hint`]s for readers.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_core::NodeId;
use rustix::fs::{Mode, OFlags};
use tokio::net::UnixDatagram;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use crate::hints::{self, Hint};

/// The longest datagram: what a socket takes by default is more.
pub(crate) const MOST_DATAGRAM: usize = 64 << 10;
/// How many hints wait for somebody who is slow to take them. Those that are more are lost to them.
const MOST_HINTS: usize = 1_024;

/// Who listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listens {
    /// Somebody who works: hears when there may be something to do.
    Worker,
    /// Somebody who shows what happens: hears everything.
    Reader,
}

impl Listens {
    /// How a socket's name ends.
    fn suffix(self) -> &'static str {
        match self {
            Self::Worker => ".sock",
            Self::Reader => ".reader",
        }
    }
}

/// Counts the wakes that have come. Whoever waits watches the count.
#[derive(Debug)]
pub struct Wakes {
    count: watch::Receiver<u64>,
    /// Kept so that somebody listens.
    source: Arc<WakeSource>,
}

/// Somebody who counts wakes, until it is dropped.
#[derive(Debug)]
pub(crate) struct WakeSource {
    /// Kept so that nothing closes where nobody listens.
    counts: Arc<Counts>,
    listening: Option<JoinHandle<()>>,
}

/// How many wakes came for whom, and the hints that come with them.
#[derive(Debug)]
pub(crate) struct Counts {
    workers: watch::Sender<u64>,
    readers: watch::Sender<u64>,
    hints: broadcast::Sender<Hint>,
}

impl Default for Counts {
    fn default() -> Self {
        let hints = broadcast::Sender::new(MOST_HINTS);
        Self { workers: watch::Sender::default(), readers: watch::Sender::default(), hints }
    }
}

impl Counts {
    /// There may be something to do.
    pub(crate) fn wake(&self) {
        self.workers.send_modify(|count| *count += 1);
        self.wake_readers();
    }

    /// A run has new events.
    pub(crate) fn wake_readers(&self) {
        self.readers.send_modify(|count| *count += 1);
    }

    /// Somebody says something. Most processes ask for no hints, and then none is read.
    pub(crate) fn hint(&self, message: &str) {
        if self.hints.receiver_count() > 0 {
            hints::read(message).for_each(|hint| drop(self.hints.send(hint)));
        }
    }
}

impl WakeSource {
    /// Counts what this task tells; nothing, without one. Must be called within a tokio runtime.
    pub(crate) fn of<Task: Future<Output = ()> + Send + 'static>(
        listen: Option<impl FnOnce(Arc<Counts>) -> Task>,
    ) -> Self {
        let counts = Arc::new(Counts::default());
        let listening = listen.map(|listen| tokio::spawn(listen(Arc::clone(&counts))));
        Self { counts, listening }
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
    pub(crate) fn of_folder(folder: &Path, name: &NodeId, listens: Listens) -> Self {
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let listen = WakeListener::register(folder, name, listens).ok().map(|listener| {
            async move |counts: Arc<Counts>| {
                let mut message = vec![0; MOST_DATAGRAM];
                while let Ok(length) = listener.hear(&mut message).await {
                    match std::str::from_utf8(&message[..length]) {
                        Ok("") => counts.wake(),
                        Ok(message) => counts.hint(message),
                        Err(_) => {}
                    }
                }
            }
        });
        Self::from_source(Arc::new(WakeSource::of(listen)), listens)
    }

    pub(crate) fn from_source(source: Arc<WakeSource>, listens: Listens) -> Self {
        let count = match listens {
            Listens::Worker => source.counts.workers.subscribe(),
            Listens::Reader => source.counts.readers.subscribe(),
        };
        Self { count, source }
    }

    /// The count. It never closes as long as this is kept.
    #[must_use]
    pub fn count(&self) -> watch::Receiver<u64> {
        self.count.clone()
    }

    /// What live runs say from now on, to a reader that wants to know. It never closes as long as this is kept.
    #[must_use]
    pub fn hints(&self) -> broadcast::Receiver<Hint> {
        self.source.counts.hints.subscribe()
    }
}

/// A process that wants to be woken. Its socket goes when it is dropped.
#[derive(Debug)]
pub(crate) struct WakeListener {
    socket: UnixDatagram,
    folder: OwnedFd,
    name: String,
}

impl WakeListener {
    /// Makes the socket `<folder>/<node>.sock`, or `.reader`. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the folder cannot be opened or the socket not be made.
    fn register(folder: &Path, node: &NodeId, listens: Listens) -> io::Result<Self> {
        let folder = open_folder(folder)?;
        let name = format!("{node}{}", listens.suffix());
        // Bound under another name first: between the making of the file and the end of the bind a
        // sender would find it dead and remove it, and others could open it before its mode is set.
        let unready = within(&folder, format!("{node}.binding"));
        remove_if_there(&unready)?;
        let socket = UnixDatagram::bind(&unready)?;
        std::fs::set_permissions(&unready, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&unready, within(&folder, &name))?;
        Ok(Self { socket, folder, name })
    }

    /// Waits for the next datagram, and returns its length: a wake has none.
    ///
    /// # Errors
    /// If the socket fails.
    async fn hear(&self, message: &mut [u8]) -> io::Result<usize> {
        self.socket.recv(message).await
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
    send(folder, &[Listens::Worker, Listens::Reader], &[])
}

/// The same for readers alone.
pub(crate) fn wake_readers(folder: &Path) -> io::Result<()> {
    send(folder, &[Listens::Reader], &[])
}

/// Hands hints to every reader, in one datagram.
pub(crate) fn send_hints(folder: &Path, message: &str) -> io::Result<()> {
    send(folder, &[Listens::Reader], message.as_bytes())
}

fn send(folder: &Path, those: &[Listens], message: &[u8]) -> io::Result<()> {
    let opened = open_folder(folder)?;
    let sender = std::os::unix::net::UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !those.iter().any(|listens| name.as_bytes().ends_with(listens.suffix().as_bytes())) {
            continue;
        }
        let path = within(&opened, &name);
        match sender.send_to(message, &path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => remove_if_there(&path)?,
            // A full queue means that it has wakes or hints to read; anything else is left to polling.
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
