//! One login file, read again whenever it has changed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cofferdam_agent::{LoginContent, LoginProblem, profile};
use cofferdam_core::Agent;
use rustix::fs::{Mode, OFlags};

/// Larger files are no logins.
const LARGEST: u64 = 1 << 20;

/// What is wrong with a login file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It cannot be opened or read.
    #[error("it cannot be read ({0})")]
    Unreadable(String),
    /// A folder, a pipe, a device.
    #[error("it is not a file")]
    NotAFile,
    /// Larger than any login.
    #[error("it is larger than {} KiB", LARGEST >> 10)]
    TooLarge,
    /// Another user could have put a token of theirs into it, and would then see what is asked with it.
    #[error("another user can write it (type `chmod 600` on it)")]
    OthersWrite,
    /// It belongs to somebody else.
    #[error("it belongs to another user")]
    Foreign,
    /// What is in it cannot be used.
    #[error(transparent)]
    Content(#[from] LoginProblem),
}

/// A login file.
pub(super) struct LoginFile {
    agent: Agent,
    path: PathBuf,
    read: Mutex<Option<(Stamp, LoginContent)>>,
}

/// What changes with a file's content. A CLI replaces its file or writes it anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl LoginFile {
    pub(super) fn new(agent: Agent, path: PathBuf) -> Self {
        Self { agent, path, read: Mutex::new(None) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds now; `None` if it is not there.
    pub(super) fn read(&self) -> Result<Option<LoginContent>, Problem> {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut file) = open(&self.path)? else {
            *known = None;
            return Ok(None);
        };
        let stamp = check(&file)?;
        if let Some((before, content)) = &*known
            && *before == stamp
        {
            return Ok(Some(content.clone()));
        }
        let mut bytes = Vec::new();
        Read::by_ref(&mut file)
            .take(LARGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&error))?;
        if bytes.len() as u64 > LARGEST {
            return Err(Problem::TooLarge);
        }
        match ((profile(self.agent).login.parse)(&bytes), &*known) {
            (Ok(content), _) => {
                *known = Some((stamp, content.clone()));
                Ok(Some(content))
            }
            // A CLI may be writing it just now. What it held before is not known to be wrong, and the next call looks
            // again.
            (Err(_), Some((_, before))) => Ok(Some(before.clone())),
            (Err(problem), None) => Err(problem.into()),
        }
    }
}

/// Opens it without waiting for anybody: a pipe in its place would otherwise hang the broker. Links are followed, since
/// people keep their home's files elsewhere; what counts is whose the file is that they lead to.
fn open(path: &Path) -> Result<Option<File>, Problem> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        // A socket.
        Err(rustix::io::Errno::NXIO) => Err(Problem::NotAFile),
        Err(errno) => Err(unreadable(&errno.into())),
    }
}

fn check(file: &File) -> Result<Stamp, Problem> {
    let found = file.metadata().map_err(|error| unreadable(&error))?;
    if !found.is_file() {
        return Err(Problem::NotAFile);
    }
    if found.uid() != 0 && found.uid() != rustix::process::geteuid().as_raw() {
        return Err(Problem::Foreign);
    }
    if found.mode() & 0o022 != 0 {
        return Err(Problem::OthersWrite);
    }
    if found.len() > LARGEST {
        return Err(Problem::TooLarge);
    }
    Ok(Stamp {
        device: found.dev(),
        inode: found.ino(),
        size: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

fn unreadable(error: &io::Error) -> Problem {
    Problem::Unreadable(error.to_string())
}
