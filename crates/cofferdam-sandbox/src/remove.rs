//! Removing a tree that an agent has written.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

/// How often a folder that was emptied may have something in it again.
const MOST_REFILLED: u32 = 100;

/// Removes a folder and everything below. It follows no link, opens folders that were closed to their own
/// owner, and does not mind a tree that is deeper than the stack: the attacks are a link that leads out,
/// a folder of mode 000 and ten thousand nested folders.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = match openat(CWD, parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    {
        Ok(parent) => parent,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut open: Vec<(OwnedFd, Vec<u8>)> = Vec::new();
    match enter(&parent, name) {
        Ok(Some(folder)) => open.push((folder, name.as_bytes().to_vec())),
        Ok(None) => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut refilled = 0;
    while let Some((folder, _)) = open.last() {
        if let Some((below, name)) = empty(folder)? {
            // Descriptors are few; a tree that is deeper than that is made shallower from its bottom.
            if open.len() >= 400 {
                flatten(&open[0].0, folder, &name)?;
                continue;
            }
            open.push((below, name));
        } else {
            let (folder, name) = open.pop().expect("the loop holds one");
            let above = open.last().map_or(parent.as_fd(), |(folder, _)| folder.as_fd());
            match unlinkat(above, OsStr::from_bytes(&name), AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                // A process that was killed a moment ago may have written once more.
                Err(Errno::NOTEMPTY) if refilled < MOST_REFILLED => {
                    refilled += 1;
                    open.push((folder, name));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Opens a folder that is to be emptied; `None` if it is gone.
fn enter(parent: impl AsFd, name: &OsStr) -> io::Result<Option<OwnedFd>> {
    match open_folder(parent, name) {
        Ok(folder) => {
            // Entries can be removed only from a folder that its owner may write.
            let _ = rustix::fs::fchmod(&folder, Mode::RWXU);
            Ok(Some(folder))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a folder that an agent wrote, also one that its owner closed to itself: it could hide anything.
///
/// The right to read is given through a descriptor and never by name. The attack: while we look, the agent
/// swaps the folder for a link to `~/.ssh`, and it is that whose mode we change.
pub(crate) fn open_folder(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent.as_fd(), name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => open_closed_folder(parent.as_fd(), name),
        opened => opened,
    }
}

fn open_closed_folder(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(parent, name, OFlags::PATH | flags, Mode::empty())?;
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&folder)?.st_mode & 0o777);
    // A descriptor of this kind cannot be changed directly; its entry in /proc can, and leads nowhere else.
    rustix::fs::chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), mode | Mode::RUSR | Mode::XUSR)?;
    openat(&folder, ".", OFlags::RDONLY | flags, Mode::empty())
}

/// Removes everything but folders, and returns the first of those that is not empty.
fn empty(folder: &OwnedFd) -> io::Result<Option<(OwnedFd, Vec<u8>)>> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if entry.file_type() != FileType::Directory {
            match unlinkat(folder, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match unlinkat(folder, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS) => {
                if let Some(below) = enter(folder, name)? {
                    return Ok(Some((below, name.as_bytes().to_vec())));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Moves a folder up to the top, under a name that is free there.
fn flatten(top: &OwnedFd, folder: &OwnedFd, name: &[u8]) -> io::Result<()> {
    for number in 0_u64.. {
        let free = format!(".removing-{number}");
        match rustix::fs::renameat_with(
            folder,
            OsStr::from_bytes(name),
            top,
            &free,
            rustix::fs::RenameFlags::NOREPLACE,
        ) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("there are more numbers than folders")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_hostile_tree_is_removed_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let outside = root.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        let tree = root.path().join("tree");
        fs::create_dir(&tree).unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        fs::create_dir_all(tree.join("closed/inner")).unwrap();
        fs::write(tree.join("closed/inner/file"), "x").unwrap();
        fs::set_permissions(tree.join("closed"), std::os::unix::fs::PermissionsExt::from_mode(0o000))
            .unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert!(outside.join("kept").exists());
        remove_tree(&tree).unwrap();
    }

    #[test]
    fn a_link_in_the_place_of_a_closed_folder_changes_no_mode() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let victim = root.path().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o000)).unwrap();
        std::os::unix::fs::symlink(&victim, root.path().join("swapped")).unwrap();
        let parent = fs::File::open(root.path()).unwrap();
        // What happens after the first try was refused: by now the name is a link.
        let opened = open_closed_folder(parent.as_fd(), OsStr::new("swapped"));
        assert!(opened.is_err());
        assert_eq!(victim.metadata().unwrap().permissions().mode() & 0o777, 0);
        assert!(open_closed_folder(parent.as_fd(), OsStr::new("victim")).is_ok());
        assert_eq!(victim.metadata().unwrap().permissions().mode() & 0o777, 0o500);
    }

    #[test]
    fn a_tree_deeper_than_the_descriptors_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let mut at = rustix::fs::open(&tree, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = openat(&at, "d", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }
}
