//! What folders take on the disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a folder takes on the disk. What goes away meanwhile does not count.
pub(super) fn bytes_of(path: &Path) -> u64 {
    let mut folders = vec![path.to_owned()];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            bytes += found.blocks() * 512;
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    bytes
}
