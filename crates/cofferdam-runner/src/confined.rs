//! Reading below a folder whose content is hostile: no symlink is ever followed, nothing above it is
//! ever reached. The attack: an agent replaces a folder by a link to `/home/me/.ssh`, and whoever
//! collects its changes with plain paths puts a private key into the diff.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};

/// A folder that is read from, and never out of.
#[derive(Debug)]
pub(crate) struct ConfinedFolder {
    root: OwnedFd,
}

/// An open folder below a [`ConfinedFolder`].
#[derive(Debug)]
pub(crate) struct OpenFolder(OwnedFd);

impl ConfinedFolder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: rustix::fs::openat(CWD, path, flags, Mode::empty())? })
    }

    /// The same for a path that was resolved before, and has no symlinks unless somebody put one there since.
    pub(crate) fn open_exactly(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        Ok(Self { root: rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve)? })
    }

    /// Opens a folder below; the empty path is the root itself.
    pub(crate) fn folder(&self, below: &Path) -> io::Result<OpenFolder> {
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        self.resolve(below, OFlags::RDONLY | OFlags::DIRECTORY).map(OpenFolder)
    }

    /// Opens a regular file below. Anything else is [`io::ErrorKind::InvalidInput`]; opening a fifo or a
    /// device does not block.
    pub(crate) fn file(&self, below: &Path) -> io::Result<File> {
        let file = File::from(self.resolve(below, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// What a path is; `None` if there is nothing, or if it leads through something that is no folder.
    pub(crate) fn stat(&self, below: &Path) -> io::Result<Option<Stat>> {
        match self.resolve(below, OFlags::PATH | OFlags::NOFOLLOW) {
            Ok(fd) => Ok(Some(rustix::fs::fstat(fd)?)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The target of a symlink below.
    pub(crate) fn link_target(&self, below: &Path) -> io::Result<Vec<u8>> {
        let fd = self.resolve(below, OFlags::PATH | OFlags::NOFOLLOW)?;
        Ok(rustix::fs::readlinkat(fd, c"", Vec::new())?.into_bytes())
    }

    /// The content of a small regular file below, at most `limit` bytes; `None` if there is no such file.
    pub(crate) fn read_small(&self, below: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        use io::Read as _;
        let file = match self.file(below) {
            Ok(file) => file,
            Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::InvalidInput => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut content = Vec::new();
        file.take(limit).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    fn resolve(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        let flags = flags | OFlags::CLOEXEC;
        // With NOFOLLOW and PATH a link as the last name is opened itself; NO_SYMLINKS still refuses
        // links on the way there.
        Ok(rustix::fs::openat2(&self.root, below, flags, Mode::empty(), resolve)?)
    }
}

impl OpenFolder {
    /// Calls `visit` with each name. Names and types come from the listing alone, without a look at each
    /// file; `buffer` is reused between folders.
    pub(crate) fn each(
        &self,
        buffer: &mut Vec<u8>,
        mut visit: impl FnMut(&OsStr, FileType) -> io::Result<()>,
    ) -> io::Result<()> {
        buffer.clear();
        buffer.reserve(LISTING_BYTES);
        let space: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
        let mut listing = RawDir::new(&self.0, space);
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                visit(OsStr::from_bytes(name), entry.file_type())?;
            }
        }
        Ok(())
    }

    /// Every name, in byte order.
    pub(crate) fn list(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        self.each(&mut Vec::new(), |name, _| {
            names.push(name.to_owned());
            Ok(())
        })?;
        names.sort();
        Ok(names)
    }

    /// What a name is; a link is not followed.
    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if is_absent(&error.into()) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for OpenFolder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Large enough that most folders need one call.
const LISTING_BYTES: usize = 64 << 10;

/// Longest path that is handed on; git and the system calls have the same bound.
pub(crate) const MAX_PATH_BYTES: usize = 4000;

/// Whether an error says that there is nothing at a path, also because something on the way is a link or
/// no folder.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(rustix::io::Errno::from_raw_os_error),
        Some(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP)
    )
}

/// The time of the last change of a file or of what is known about it, which no program can set.
pub(crate) fn changed_at_ns(stat: &Stat) -> i128 {
    i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec)
}

/// The type of a file.
pub(crate) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_on_the_way_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("real")).unwrap();
        std::fs::write(folder.path().join("real/file"), "x").unwrap();
        std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("passwd")).unwrap();
        let confined = ConfinedFolder::open(folder.path()).unwrap();
        assert!(confined.file(Path::new("real/file")).is_ok());
        assert!(confined.file(Path::new("link/file")).is_err());
        assert!(confined.file(Path::new("passwd")).is_err());
        assert!(confined.file(Path::new("../x")).is_err());
        assert!(confined.folder(Path::new("link")).is_err());
        assert!(confined.stat(Path::new("link/file")).unwrap().is_none());
        assert_eq!(confined.link_target(Path::new("passwd")).unwrap(), b"/etc/passwd");
    }
}
