//! Whether a service runs: a lock that the kernel drops with its process, and a file that says the rest.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_core::{NodeName, ProcessName, ProcessStatus};
use cofferdam_runner::Home;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// What a service says of itself in `service/NAME.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Served {
    /// Its process.
    pub(crate) pid: u32,
    /// When it was started.
    pub(crate) started_at_ms: u64,
    /// Where the API listens.
    pub(crate) listen: Option<SocketAddr>,
    /// Whether it does what it is there for.
    pub(crate) is_ready: bool,
    /// Its children.
    pub(crate) children: BTreeMap<ProcessName, ChildState>,
}

/// A child of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ChildState {
    /// How it stands.
    pub(crate) status: ProcessStatus,
    /// Its process; none while it is not started again yet.
    pub(crate) pid: Option<u32>,
    /// How often it was started again.
    pub(crate) restarts: u32,
    /// When it was last started.
    pub(crate) started_at_ms: Option<u64>,
    /// When it last ended.
    pub(crate) finished_at_ms: Option<u64>,
    /// What it exited with.
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// More, for people.
    pub(crate) message: Option<String>,
}

/// Whether a service runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// It does. What it says of itself is missing for a moment after its start.
    Running(Option<Served>),
    /// It does not.
    Stopped,
    /// It does not, and did not end by itself: this is what it said last.
    Unclean(Served),
}

/// This process as the service of its name. Dropping it is a clean end.
#[derive(Debug)]
pub(crate) struct Instance {
    path: PathBuf,
    served: Served,
    _lock: File,
}

impl Instance {
    /// Makes this process the service of this name. `None` if there is one.
    pub(crate) fn begin(home: &Home, name: &NodeName, now_ms: u64) -> io::Result<Option<Self>> {
        let (lock_path, path) = paths(home, name);
        let lock = File::options().create(true).truncate(false).write(true).open(lock_path)?;
        if !lock_within_moments(&lock)? {
            return Ok(None);
        }
        let served = Served {
            pid: std::process::id(),
            started_at_ms: now_ms,
            listen: None,
            is_ready: false,
            children: BTreeMap::new(),
        };
        let instance = Self { path, served, _lock: lock };
        instance.write()?;
        Ok(Some(instance))
    }

    /// Changes what it says of itself.
    pub(crate) fn say(&mut self, change: impl FnOnce(&mut Served)) {
        let before = self.served.clone();
        change(&mut self.served);
        if self.served != before
            && let Err(error) = self.write()
        {
            tracing::warn!(path = %self.path.display(), %error, "the state of the service could not be written");
        }
    }

    fn write(&self) -> io::Result<()> {
        let new = self.path.with_extension("json.new");
        fs::write(&new, serde_json::to_vec(&self.served)?)?;
        fs::rename(new, &self.path)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The lock stays where it is: one that is taken away could be held by two.
        let _ = fs::remove_file(&self.path);
    }
}

impl State {
    /// Whether the service of this name runs.
    pub(crate) fn of(home: &Home, name: &NodeName) -> io::Result<Self> {
        let (lock_path, path) = paths(home, name);
        let is_running = match File::options().write(true).open(&lock_path) {
            Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockShared).is_err(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let served = read(&path)?;
        Ok(match (is_running, served) {
            (true, served) => Self::Running(served),
            (false, Some(served)) => Self::Unclean(served),
            (false, None) => Self::Stopped,
        })
    }
}

/// Whoever looks whether a service runs holds its lock for a moment.
fn lock_within_moments(lock: &File) -> io::Result<bool> {
    const TRIES: u32 = 20;
    for _ in 0..TRIES {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(10)),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(false)
}

fn read(path: &Path) -> io::Result<Option<Served>> {
    match fs::read(path) {
        // Written in one step; what cannot be read is of another version.
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn paths(home: &Home, name: &NodeName) -> (PathBuf, PathBuf) {
    (home.service().join(format!("{name}.lock")), home.service().join(format!("{name}.json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Home, NodeName) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        (folder, home, NodeName::default())
    }

    #[test]
    fn one_name_is_one_service() {
        let (_folder, home, name) = place();
        assert_eq!(State::of(&home, &name).unwrap(), State::Stopped);
        let mut first = Instance::begin(&home, &name, 7).unwrap().unwrap();
        assert!(Instance::begin(&home, &name, 8).unwrap().is_none());
        first.say(|served| served.is_ready = true);
        let State::Running(Some(served)) = State::of(&home, &name).unwrap() else { panic!("it runs") };
        assert_eq!((served.pid, served.started_at_ms, served.is_ready), (std::process::id(), 7, true));
        let other: NodeName = "second".parse().unwrap();
        assert!(Instance::begin(&home, &other, 8).unwrap().is_some());
        drop(first);
        assert_eq!(State::of(&home, &name).unwrap(), State::Stopped);
    }

    #[test]
    fn one_that_was_killed_is_told_from_one_that_ended() {
        let (_folder, home, name) = place();
        let killed = Instance::begin(&home, &name, 7).unwrap().unwrap();
        let (lock, path) = paths(&home, &name);
        let said = fs::read(&path).unwrap();
        drop(killed);
        // As the kernel leaves it: both files are there, and nobody holds the lock.
        fs::write(lock, "").unwrap();
        fs::write(path, said).unwrap();
        assert!(
            matches!(State::of(&home, &name).unwrap(), State::Unclean(served) if served.started_at_ms == 7)
        );
        assert!(Instance::begin(&home, &name, 8).unwrap().is_some(), "the next one takes its place");
    }
}
