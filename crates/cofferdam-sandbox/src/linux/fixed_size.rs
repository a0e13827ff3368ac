//! A file system of a fixed size for everything that an agent writes, in memory.
//!
//! It is mounted on the host, in the sandbox's folder, since what the agent wrote is collected when the sandbox is gone. So it
//! needs root, and whoever removes the folder unmounts it first.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use cofferdam_core::DiskLimit;
use rustix::fs::{XattrFlags, setxattr, statfs};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::mounts;
use crate::folder::Folder;
use crate::remove::remove_tree;
use crate::walls::FILE_BYTES_OVER;

/// Its folder in the sandbox's own.
pub(crate) const FOLDER: &str = "fixed-size";

/// `TMPFS_MAGIC` of the kernel's headers.
const IN_MEMORY: i64 = 0x0102_1994;

/// By a little larger than the limit, so that whoever fills it is seen to break the limit and is not only out of space.
fn size(limit_bytes: u64) -> u64 {
    limit_bytes.saturating_add(FILE_BYTES_OVER)
}

/// Mounts it.
pub(crate) fn make(folder: &Folder, limit_bytes: u64) -> io::Result<()> {
    let path = folder.make(FOLDER)?;
    mounts::attach(mounts::memory(size(limit_bytes), "0700")?.as_fd(), &path)?;
    // An overlay keeps its notes in such attributes, and kernels before 6.6 have none in memory.
    match setxattr(&path, "user.cofferdam", b"", XattrFlags::empty()) {
        Err(Errno::OPNOTSUPP) => Err(io::Error::other(
            "this kernel keeps no attributes in memory (it needs Linux 6.6): set sandbox.native.storage to `disk`",
        )),
        set => Ok(set?),
    }
}

/// What is really there.
pub(super) fn measure(folder: &Folder, limit_bytes: u64) -> DiskLimit {
    let found = statfs(folder.path().join(FOLDER)).ok().filter(|found| found.f_type == IN_MEMORY);
    let bytes = found.map(|found| found.f_blocks.saturating_mul(found.f_bsize.cast_unsigned()));
    // The kernel rounds up to whole pages.
    let most = size(limit_bytes).next_multiple_of(rustix::param::page_size() as u64);
    if bytes.is_some_and(|bytes| bytes <= most) { DiskLimit::FixedSize } else { DiskLimit::Sampled }
}

/// Removes it, if there is one. Its files first: other sandboxes may have a copy of the mount that lasts as long as they do.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    let path = folder.join(FOLDER);
    let entries = match fs::read_dir(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() { remove_tree(&path)? } else { fs::remove_file(&path)? }
    }
    match unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        // It was never mounted, or is not any more.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
