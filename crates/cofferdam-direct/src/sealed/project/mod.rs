//! Reading a project. The process sees the project as an agent would, masks and all, and of the machine nothing else. On top of
//! that no path leads out of the project: a link in it to `/proc/self/mountinfo` would name folders of the host.

mod glob;
mod grep;
mod read;
mod walk;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

pub use glob::GlobJob;
pub(super) use glob::glob;
pub(super) use grep::grep;
pub use grep::{GrepJob, GrepOutput};
pub use read::ReadJob;
pub(super) use read::read;

use super::SealedCall;

/// Where the model is told that the project is.
pub(crate) const SHOWN_AT: &str = "/workspace";

/// A project that is read from, and never out of.
pub(super) struct Project {
    path: PathBuf,
    root: OwnedFd,
}

/// Opens the project of a call.
pub(super) fn open(call: &SealedCall) -> Result<Project, String> {
    let path = call.project.clone().ok_or("this run has no project")?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, &path, flags, Mode::empty());
    Ok(Project { root: root.map_err(|error| format!("the project cannot be opened: {error}"))?, path })
}

/// Whether links inside the project are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Links {
    /// To places inside of it.
    Inside,
    /// Nowhere: a walk would go in circles.
    Never,
}

impl Project {
    /// Opens a regular file below the root. Opening a fifo or a device does not block, and is refused.
    fn open(&self, below: &Path, links: Links) -> io::Result<File> {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        resolve.set(ResolveFlags::NO_SYMLINKS, links == Links::Never);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let file = File::from(openat2(&self.root, below, flags, Mode::empty(), resolve)?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is not a file")),
        }
    }

    /// A file's bytes, and whether there are more of them.
    fn bytes(&self, below: &Path, links: Links, most: u64) -> io::Result<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        self.open(below, links)?.take(most + 1).read_to_end(&mut bytes)?;
        let has_more = bytes.len() as u64 > most;
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok((bytes, has_more))
    }

    /// Where a walk begins: what a path names below the root, which is no link. A walk would follow its first one.
    fn start(&self, named: Option<&str>) -> Result<PathBuf, String> {
        let Some(named) = named else { return Ok(PathBuf::new()) };
        let below = below(named)?;
        if !below.as_os_str().is_empty() {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
            let found = openat2(&self.root, &below, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve);
            found.map_err(|error| unreadable(named, &error.into()))?;
        }
        Ok(below)
    }
}

/// What a path that the model wrote is below the root: `src/main.rs` or `/workspace/src/main.rs`.
fn below(named: &str) -> Result<PathBuf, String> {
    let path = Path::new(named);
    let path = match path.strip_prefix(SHOWN_AT) {
        Ok(below) => below,
        Err(_) if path.is_absolute() => {
            return Err(format!("{named} is not in the project, which is at {SHOWN_AT}"));
        }
        Err(_) => path,
    };
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    match is_inside {
        true => Ok(path.components().filter(|part| *part != Component::CurDir).collect()),
        false => Err(format!("{named} leads out of the project, or holds `..`")),
    }
}

/// What the model is told of a file that cannot be opened: never a path of ours.
fn unreadable(named: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no file {named}"),
        _ if error.raw_os_error() == Some(rustix::io::Errno::XDEV.raw_os_error()) => {
            format!("{named} leads out of the project")
        }
        _ => format!("{named} cannot be read: {error}"),
    }
}
