//! Whether anybody else could change what would be started.
//!
//! Everything on the way, from the root to the program, must belong to root or to the caller and may not be
//! writable by everybody; a folder like `/tmp`, in which nobody may touch what is another's, is no matter.
//! What a group may write is accepted: distributions give each user a group of their own, and whoever put
//! somebody into a shared one meant it. Access lists are not read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Cli;
use super::error::InstallationError;

/// Checks a path and every folder above it. A symlink is judged itself, not by where it leads.
pub(super) fn check_chain(cli: Cli, path: &Path) -> Result<(), InstallationError> {
    path.ancestors().try_for_each(|path| check(cli, path))
}

/// Checks everything below a folder, which is given to the agent whole.
pub(super) fn check_tree(cli: Cli, folder: &Path) -> Result<(), InstallationError> {
    let unreadable = |source| InstallationError::Unreadable { cli, path: folder.to_owned(), source };
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        check(cli, &path)?;
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            check_tree(cli, &path)?;
        }
    }
    Ok(())
}

fn check(cli: Cli, path: &Path) -> Result<(), InstallationError> {
    let found = path.symlink_metadata().map_err(|source| InstallationError::Unreadable {
        cli,
        path: path.to_owned(),
        source,
    })?;
    let caller = rustix::process::geteuid().as_raw();
    match suspicion(found.uid(), found.mode(), caller) {
        Some(how) => Err(InstallationError::Untrusted { cli, path: path.to_owned(), how }),
        None => Ok(()),
    }
}

/// Who could change a file with this owner and mode, if that is somebody else.
fn suspicion(owner: u32, mode: u32, caller: u32) -> Option<String> {
    const EVERYBODY_WRITES: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let kind = mode & libc::S_IFMT;
    if owner != 0 && owner != caller {
        return Some(format!("belongs to user {owner}"));
    }
    let sticky_folder = kind == libc::S_IFDIR && mode & STICKY != 0;
    if kind != libc::S_IFLNK && mode & EVERYBODY_WRITES != 0 && !sticky_folder {
        return Some("can be written by every user of this machine".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_and_the_caller_are_trusted() {
        assert_eq!(suspicion(0, libc::S_IFREG | 0o755, 1000), None);
        assert_eq!(suspicion(1000, libc::S_IFREG | 0o755, 1000), None);
        assert!(suspicion(1001, libc::S_IFREG | 0o755, 1000).is_some());
        assert!(suspicion(1000, libc::S_IFREG | 0o755, 0).is_some(), "root runs nobody else's program");
    }

    #[test]
    fn what_everybody_may_write_is_refused_unless_it_is_a_sticky_folder_or_a_link() {
        assert!(suspicion(0, libc::S_IFREG | 0o777, 0).is_some());
        assert!(suspicion(0, libc::S_IFREG | 0o1777, 0).is_some());
        assert!(suspicion(0, libc::S_IFDIR | 0o777, 0).is_some());
        assert_eq!(suspicion(0, libc::S_IFDIR | 0o1777, 0), None);
        assert_eq!(suspicion(0, libc::S_IFLNK | 0o777, 0), None);
        assert_eq!(suspicion(0, libc::S_IFDIR | 0o775, 0), None);
    }
}
