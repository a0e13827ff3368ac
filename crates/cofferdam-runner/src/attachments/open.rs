//! From a path that an agent wrote to a file that was checked.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::Errno;

use super::{MOST_FILE_BYTES, MappedRoot, Refused};
use crate::confined::{MAX_PATH_BYTES, kind_of};
use crate::workspace::{Matcher, masked_paths};

/// The agent's folder, open.
pub(super) struct Root<'a> {
    mapped: &'a MappedRoot<'a>,
    folder: OwnedFd,
    matcher: Matcher,
    /// Who the agent is on the disk: its folder's owner.
    agent: Agent,
}

#[derive(Clone, Copy)]
struct Agent {
    uid: u32,
    gid: u32,
}

/// What may be done with a file or a folder.
const READ: u32 = 0o4;
const SEARCH: u32 = 0o1;

impl<'a> Root<'a> {
    pub(super) fn open(mapped: &'a MappedRoot<'a>) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, mapped.host, flags, Mode::empty())?;
        let stat = fstat(&folder)?;
        let matcher = Matcher::new(mapped.mask).map_err(io::Error::other)?;
        Ok(Self { mapped, folder, matcher, agent: Agent { uid: stat.st_uid, gid: stat.st_gid } })
    }

    /// The path from the folder, by the path's text alone.
    pub(super) fn relative(&self, named: &str) -> Result<PathBuf, Refused> {
        if named.is_empty() {
            return Err(Refused::Empty);
        }
        if named.contains('\0') || named.len() > MAX_PATH_BYTES {
            return Err(Refused::Missing);
        }
        let path = Path::new(named);
        let below = if path.has_root() {
            path.strip_prefix(self.mapped.inside).map_err(|_| Refused::Outside)?
        } else {
            path
        };
        let mut relative = PathBuf::new();
        for component in below.components() {
            match component {
                Component::Normal(name) => relative.push(name),
                Component::CurDir => {}
                // Where it leads depends on links, and nobody needs it to name a file.
                Component::ParentDir => return Err(Refused::Up),
                Component::RootDir | Component::Prefix(_) => return Err(Refused::Outside),
            }
        }
        // The folder itself, or something that was written as a folder.
        if relative.as_os_str().is_empty() || named.ends_with('/') || named.ends_with("/.") {
            return Err(Refused::NotAFile);
        }
        Ok(relative)
    }

    /// Opens a regular file that the agent could have read. No link is followed on the way, whoever puts one there
    /// meanwhile: each name is looked up in a folder that is held open.
    pub(super) fn file(&self, relative: &Path) -> Result<File, Refused> {
        self.refuse_hidden(relative)?;
        let mut at = self.folder.try_clone()?;
        let mut names = relative.iter().peekable();
        while let Some(name) = names.next() {
            self.check_access(&fstat(&at).map_err(io::Error::from)?, SEARCH)?;
            at = look_up(at.as_fd(), name)?;
            let stat = fstat(&at).map_err(io::Error::from)?;
            match (kind_of(&stat), names.peek()) {
                (FileType::Symlink, _) => return Err(Refused::Link),
                (FileType::Directory, Some(_)) => {}
                (FileType::RegularFile, None) => return self.open_checked(&at, &stat),
                (_, Some(_)) => return Err(Refused::Missing),
                (_, None) => return Err(Refused::NotAFile),
            }
        }
        Err(Refused::NotAFile)
    }

    /// A descriptor without rights becomes one that reads. Only now is the file opened: a device or a fifo never is.
    fn open_checked(&self, at: &OwnedFd, stat: &Stat) -> Result<File, Refused> {
        self.check_access(stat, READ)?;
        self.refuse_other_name(stat)?;
        if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > MOST_FILE_BYTES {
            return Err(Refused::TooLarge);
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(CWD, format!("/proc/self/fd/{}", at.as_raw_fd()), flags, Mode::empty());
        let opened = opened.map_err(|error| match error {
            Errno::ACCESS | Errno::PERM => Refused::Closed,
            error => Refused::Io(error.into()),
        })?;
        let again = fstat(&opened).map_err(io::Error::from)?;
        match (again.st_dev, again.st_ino) == (stat.st_dev, stat.st_ino)
            && kind_of(&again) == FileType::RegularFile
        {
            true => Ok(File::from(opened)),
            false => Err(Refused::NotAFile),
        }
    }

    /// Git's own folder holds the credentials that its configuration is shown without.
    fn refuse_hidden(&self, relative: &Path) -> Result<(), Refused> {
        let mut folder = PathBuf::new();
        for name in relative {
            if self.matcher.hides(&folder, name) || name.eq_ignore_ascii_case(".git") {
                return Err(Refused::Hidden);
            }
            folder.push(name);
        }
        Ok(())
    }

    /// Root may read everything, the agent may not. For anybody else the kernel decides by itself.
    fn check_access(&self, stat: &Stat, wanted: u32) -> Result<(), Refused> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let shift = match stat {
            stat if stat.st_uid == self.agent.uid => 6,
            stat if stat.st_gid == self.agent.gid => 3,
            _ => 0,
        };
        if (stat.st_mode >> shift) & wanted == 0 { Err(Refused::Closed) } else { Ok(()) }
    }

    /// A file with several names may have one that is outside, or one that is hidden. Package managers link files of
    /// one owner all over a project, so those are let through unless the other name is hidden.
    fn refuse_other_name(&self, stat: &Stat) -> Result<(), Refused> {
        if stat.st_nlink <= 1 {
            return Ok(());
        }
        if stat.st_uid != self.agent.uid {
            return Err(Refused::HardLink);
        }
        let hidden = masked_paths(self.mapped.host, self.mapped.mask).map_err(io::Error::other)?;
        let is_it = |path: &PathBuf| {
            let found = rustix::fs::lstat(self.mapped.host.join(path));
            found.is_ok_and(|found| (found.st_dev, found.st_ino) == (stat.st_dev, stat.st_ino))
        };
        if hidden.iter().any(is_it) { Err(Refused::Hidden) } else { Ok(()) }
    }
}

/// One name in a folder; a link is found itself and not followed.
fn look_up(folder: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Refused> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let found = match openat2(folder, name, flags, Mode::empty(), resolve) {
        // Unknown to old kernels and to the filters of some containers. A single name that is not followed is as safe.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => openat(folder, name, flags, Mode::empty()),
        found => found,
    };
    found.map_err(|error| match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Refused::Missing,
        Errno::LOOP | Errno::XDEV => Refused::Link,
        Errno::ACCESS => Refused::Closed,
        error => Refused::Io(error.into()),
    })
}
