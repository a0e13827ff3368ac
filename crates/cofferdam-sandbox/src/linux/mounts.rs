//! Mounts that are built detached and attached later.
//!
//! For a sandbox that root makes, the parent opens them all before the sandbox exists: the ids inside
//! cannot walk root's folders, and only root may shift owners. For an ordinary user the child opens them,
//! since only it has the rights to mount anything.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::id_map;
use super::plan::{Access, Entry, IdRange, Owner};
use super::sys::{Depth, MountAttributes, set_mount_attributes};

/// Opens the host's part of an entry, if it has one.
///
/// `stage` is a folder in a mount namespace of our own where shifted layers can be attached; there is one
/// only for a sandbox that root makes, and that has layers.
pub(super) fn open(entry: &Entry, ids: Option<IdRange>, stage: Option<&Path>) -> io::Result<Option<OwnedFd>> {
    match entry {
        Entry::Bind { source, access, owner, .. } => open_bind(source, *access, *owner, ids).map(Some),
        Entry::Overlay { layers, upper, work, owner, access, .. } => {
            let layers = match (stage, *owner, ids) {
                (Some(stage), Some(owner), Some(ids)) => shift_layers(layers, owner, ids, stage)?,
                _ => layers.clone(),
            };
            open_overlay(&layers, upper, work, *access).map(Some)
        }
        _ => Ok(None),
    }
}

fn open_bind(
    source: &Path,
    access: Access,
    owner: Option<Owner>,
    ids: Option<IdRange>,
) -> io::Result<OwnedFd> {
    let depth = OpenTreeFlags::AT_RECURSIVE;
    let tree = match owner {
        Some(_) => clone_exactly(source, depth)?,
        None => open_tree(CWD, source, CLONE | depth)?,
    };
    let mut set = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    if access == Access::ReadOnly {
        set |= libc::MOUNT_ATTR_RDONLY;
    }
    // Whole devices are only ever bound by name, and a bound device must stay one.
    if source.starts_with("/dev") {
        set &= !libc::MOUNT_ATTR_NODEV;
    }
    // Every mount below is closed too; owners are shifted at the top alone, since not every file system can.
    let attributes = MountAttributes { set, propagation: libc::MS_PRIVATE, id_map: None };
    set_mount_attributes(&tree, Depth::Recursive, &attributes)?;
    if let (Some(owner), Some(ids)) = (owner, ids) {
        let map = id_map::namespace(owner, ids)?;
        let attributes = MountAttributes { id_map: Some(map.as_fd()), ..MountAttributes::default() };
        match set_mount_attributes(&tree, Depth::One, &attributes) {
            // Without a shift fewer files can be read, never more; what must be written cannot do without.
            Err(error) if access == Access::ReadOnly && is_unsupported(&error) => {}
            shifted => shifted?,
        }
    }
    Ok(tree)
}

/// Whether a file system cannot shift owners: each has to learn it, and old kernels know it of few.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP))
}

/// A copy of a mount, with all mounts below it where the depth says so: a kernel refuses to uncover what a mount hides.
const CLONE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC);

/// A copy of the mount of a path whose files are shown as the agent's own. It had no symlink in it when it was chosen. The
/// attack: whoever owns a repository that root runs puts a link to a folder of root's in its place meanwhile, and
/// the agent owns what is in there.
fn clone_exactly(source: &Path, depth: OpenTreeFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    let found = openat2(CWD, source, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?;
    Ok(open_tree(&found, "", CLONE | depth | OpenTreeFlags::AT_EMPTY_PATH)?)
}

/// Shows each layer with its owner's files as the agent's own. The overlay takes its layers by path, so
/// they are attached to the stage.
fn shift_layers(layers: &[PathBuf], owner: Owner, ids: IdRange, stage: &Path) -> io::Result<Vec<PathBuf>> {
    let map = id_map::namespace(owner, ids)?;
    let mut shifted = Vec::new();
    for layer in layers {
        let tree = clone_exactly(layer, OpenTreeFlags::empty())?;
        let attributes = MountAttributes {
            set: libc::MOUNT_ATTR_RDONLY,
            propagation: libc::MS_PRIVATE,
            id_map: Some(map.as_fd()),
        };
        set_mount_attributes(&tree, Depth::One, &attributes)?;
        let target = free_name(stage)?;
        attach(tree.as_fd(), &target)?;
        shifted.push(target);
    }
    Ok(shifted)
}

fn free_name(stage: &Path) -> io::Result<PathBuf> {
    for number in 0..u32::MAX {
        let path = stage.join(format!("layer-{number}"));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("a sandbox has fewer layers than that")
}

fn open_overlay(layers: &[PathBuf], upper: &Path, work: &Path, access: Access) -> io::Result<OwnedFd> {
    let fs = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let lower: Vec<OsString> = layers.iter().map(|layer| escape(layer)).collect();
    fsconfig_set_string(fs.as_fd(), "lowerdir", lower.join(":".as_ref()))?;
    fsconfig_set_string(fs.as_fd(), "upperdir", upper)?;
    fsconfig_set_string(fs.as_fd(), "workdir", work)?;
    // An ordinary user cannot write the trusted attributes in which overlayfs keeps its notes by default.
    // Root could, but then the collector, which is not root, could not read them.
    fsconfig_set_flag(fs.as_fd(), "userxattr")?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if access == Access::ReadOnly {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    create(&fs, attributes)
}

/// A colon separates layers, so one in a path is written as `\:`.
fn escape(path: &Path) -> OsString {
    let mut escaped = Vec::new();
    for &byte in path.as_os_str().as_bytes() {
        if matches!(byte, b':' | b'\\') {
            escaped.push(b'\\');
        }
        escaped.push(byte);
    }
    OsString::from_vec(escaped)
}

/// A new file system in memory.
pub(super) fn memory(bytes: u64, mode: &str) -> io::Result<OwnedFd> {
    let fs = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(fs.as_fd(), "size", bytes.to_string())?;
    fsconfig_set_string(fs.as_fd(), "mode", mode)?;
    create(&fs, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV)
}

/// The processes of the pid namespace that the caller is in.
pub(super) fn processes() -> io::Result<OwnedFd> {
    let fs = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    create(
        &fs,
        MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    )
}

/// Pseudo-terminals of its own.
pub(super) fn terminals() -> io::Result<OwnedFd> {
    let fs = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_flag(fs.as_fd(), "newinstance")?;
    fsconfig_set_string(fs.as_fd(), "ptmxmode", "0666")?;
    fsconfig_set_string(fs.as_fd(), "mode", "0620")?;
    create(&fs, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC)
}

fn create(fs: &OwnedFd, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    fsconfig_create(fs.as_fd())?;
    Ok(fsmount(fs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Puts a detached mount in its place.
pub(super) fn attach(mount: BorrowedFd<'_>, target: &Path) -> io::Result<()> {
    Ok(move_mount(mount, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}
