//! Removes a prepared workspace, whatever an agent made of it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use cofferdam_core::SandboxId;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::Error;
use crate::Home;

/// Removes everything that was made for a workspace. Doing it twice is fine.
///
/// # Errors
/// If something stays behind.
pub fn remove(home: &Home, id: &SandboxId) -> Result<(), Error> {
    let folder = home.workspaces().join(id.to_string());
    remove_tree(&folder).map_err(|error| Error::writing(&folder, error))
}

/// Removes a folder with all it contains. An agent can close folders to their owner, and nest them deeper
/// than there are descriptors or stack for a recursive removal; so each is opened to us first, and what is
/// below it is moved up to the top instead of being descended into.
pub(super) fn remove_tree(path: &Path) -> io::Result<()> {
    let top = match open_folder(CWD, path.as_os_str()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut moved = 0_u64;
    loop {
        let names = list(&top)?;
        if names.is_empty() {
            break;
        }
        for name in names {
            if !unlink(&top, &name)? {
                let folder = open_folder(&top, &name)?;
                for inner in list(&folder)? {
                    if !unlink(&folder, &inner)? {
                        // A folder can be moved only by who may write to it.
                        drop(open_folder(&folder, &inner)?);
                        moved += 1;
                        rename_new(&folder, &inner, &top, &mut moved)?;
                    }
                }
                rustix::fs::unlinkat(&top, &name, AtFlags::REMOVEDIR)?;
            }
        }
    }
    drop(top);
    match rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Moves a folder to a name that is free at the top.
fn rename_new(from: &OwnedFd, name: &OsStr, top: &OwnedFd, number: &mut u64) -> io::Result<()> {
    loop {
        let target = format!(".removing-{number}");
        match rustix::fs::renameat_with(from, name, top, &target, rustix::fs::RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => *number += 1,
            result => return Ok(result?),
        }
    }
}

/// Removes a file or an empty folder; `false` if it is a folder with something in it.
fn unlink(folder: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        Ok(()) | Err(Errno::NOENT) => return Ok(true),
        Err(error) => return Err(error.into()),
    }
    match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Opens a folder, never through a link, and makes it writable for us.
fn open_folder(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let stat = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory && stat.st_mode & 0o700 != 0o700 {
        rustix::fs::chmodat(&parent, name, Mode::RWXU, AtFlags::empty())?;
    }
    rustix::fs::openat(&parent, name, flags | OFlags::RDONLY, Mode::empty())
}

fn list(folder: &OwnedFd) -> io::Result<Vec<std::ffi::OsString>> {
    use std::os::unix::ffi::OsStrExt as _;
    // Opened anew, so that the listing starts from the beginning each time.
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let again = rustix::fs::openat(folder, c".", flags, Mode::empty())?;
    let mut buffer: Vec<u8> = Vec::with_capacity(64 << 10);
    let mut listing = RawDir::new(again, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = listing.next() {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(&name).to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_and_very_deep_folders_are_removed() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("x");
        std::fs::create_dir(&root).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        let mut folder = rustix::fs::open(&root, OFlags::RDONLY, Mode::empty()).unwrap();
        for _ in 0..1100 {
            rustix::fs::mkdirat(&folder, c"d", Mode::RWXU).unwrap();
            rustix::fs::openat(&folder, c"file", OFlags::CREATE | OFlags::WRONLY, Mode::empty()).unwrap();
            let inner = rustix::fs::openat(&folder, c"d", OFlags::RDONLY, Mode::empty()).unwrap();
            rustix::fs::fchmod(&folder, Mode::empty()).unwrap();
            folder = inner;
        }
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        remove_tree(&root).unwrap();
        assert!(Path::new("/etc/passwd").exists());
    }
}
