//! One process that executes runs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cofferdam_core::{Mode, NodeId};
use cofferdam_sandbox::{Attachment, Backend};
use cofferdam_store::{Store, WakeListener};
use rustix::fs::{FlockOperation, flock};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::home::Home;

/// Looks up a variable of the caller's environment, which only the binary reads.
pub type EnvLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How a [`Node`] is set up.
pub struct NodeOptions {
    /// Its name. A node that is restarted under the same name adopts its own runs.
    pub id: NodeId,
    /// The state folder.
    pub home: Home,
    /// The record of runs.
    pub store: Store,
    /// The backends that runs may ask for.
    pub backends: Vec<Arc<dyn Backend>>,
    /// Whether sandboxes outlive this process.
    pub attachment: Attachment,
    /// The caller's environment.
    pub env: EnvLookup,
}

/// One process that executes runs.
pub struct Node {
    pub(crate) id: NodeId,
    pub(crate) home: Home,
    pub(crate) store: Store,
    pub(crate) backends: BTreeMap<Mode, Arc<dyn Backend>>,
    pub(crate) attachment: Attachment,
    pub(crate) env: EnvLookup,
    /// Changes with every wake. A hint: whoever misses it polls.
    pub(crate) wakes: watch::Receiver<u64>,
    waking: Option<JoinHandle<()>>,
    /// Locked as long as this process lives; the kernel unlocks it however the process ends.
    _lock: File,
}

impl Node {
    /// Registers this process as a node. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If another living process has the same name, or the state folder cannot be written.
    pub fn register(options: NodeOptions) -> io::Result<Self> {
        let lock = lock(&lock_path(&options.home, &options.id))?;
        let (wakes, waking) = listen(&options.home, &options.id);
        Ok(Self {
            id: options.id,
            home: options.home,
            store: options.store,
            backends: options.backends.into_iter().map(|backend| (backend.mode(), backend)).collect(),
            attachment: options.attachment,
            env: options.env,
            wakes,
            waking,
            _lock: lock,
        })
    }

    /// The node's name.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// The record of runs.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The state folder.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(waking) = &self.waking {
            waking.abort();
        }
        let _ = fs::remove_file(lock_path(&self.home, &self.id));
    }
}

/// Takes the lock. Somebody who found it free may have removed the file between its opening and its locking;
/// a lock on a file that has no name any more would make a living node look dead.
fn lock(path: &Path) -> io::Result<File> {
    loop {
        let lock = File::options().create(true).truncate(false).write(true).open(path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        if path.metadata().is_ok_and(|named| named.ino() == lock.metadata().map_or(0, |held| held.ino())) {
            return Ok(lock);
        }
    }
}

/// One socket per node, heard by all its attempts. Without it everybody polls.
fn listen(home: &Home, id: &NodeId) -> (watch::Receiver<u64>, Option<JoinHandle<()>>) {
    let (sender, wakes) = watch::channel(0);
    let Ok(listener) = WakeListener::register(&home.nodes(), id) else { return (wakes, None) };
    let waking = tokio::spawn(async move {
        while listener.wait().await.is_ok() {
            sender.send_modify(|count| *count += 1);
        }
    });
    (wakes, Some(waking))
}

fn lock_path(home: &Home, id: &NodeId) -> PathBuf {
    home.nodes().join(format!("{id}.lock"))
}

/// Whether a node of this machine lives. A lease says until when a node *may* write; this says at once
/// that it is dead, so that nobody waits for a lease to expire.
pub(crate) fn is_alive(home: &Home, id: &NodeId) -> bool {
    let Ok(lock) = File::options().write(true).open(lock_path(home, id)) else { return false };
    flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()
}

/// Removes the locks of nodes that are dead.
pub(crate) fn forget_dead(home: &Home) -> io::Result<()> {
    for entry in fs::read_dir(home.nodes())? {
        let name = entry?.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(".lock")).and_then(|id| id.parse().ok());
        if let Some(id) = id
            && !is_alive(home, &id)
        {
            let _ = fs::remove_file(lock_path(home, &id));
        }
    }
    Ok(())
}

/// Milliseconds since 1970: the only place of this crate that reads the clock.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
