//! The disk that the record and the files of runs are on.

use std::io;
use std::path::Path;

use cofferdam_core::DiskSpace;

/// How much room there is on the disk of a folder.
///
/// # Errors
/// If its file system cannot be looked at.
pub fn disk_space(folder: &Path) -> io::Result<DiskSpace> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(DiskSpace {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
    })
}
