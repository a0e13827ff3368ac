//! Where a work tree's history is, if it is not all in its own `.git` folder: linked worktrees,
//! submodules and borrowed objects.
//!
//! These places are named by files inside the repository, which is hostile. The attack: a `.git` file that
//! says `gitdir: /home/me/.ssh`, or an `alternates` file that names any folder, and the agent finds that
//! folder in its sandbox. So a place is accepted only if it really is a git folder and belongs to the
//! repository's owner ([`RepositoryOwner`]), and a folder that would become writable (through an overlay) only
//! if it names this work tree in return, which only somebody who may write there can have arranged.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::RepositoryOwner;
use super::git_config::core_worktree;
use crate::confined::{ConfinedFolder, kind_of};

/// Where a work tree's history is.
#[derive(Debug, Default)]
pub(super) struct GitFolders {
    /// The folder with this work tree's `HEAD` and `index`.
    pub(super) own: Option<PathBuf>,
    /// The folder with everything else; the same for most repositories.
    pub(super) common: Option<PathBuf>,
    /// Set if `.git` is a file and what it names was refused.
    pub(super) refused: Option<PathBuf>,
}

/// How far alternates are followed; git's own bound.
const MAX_ALTERNATES_DEPTH: usize = 5;
/// Files that name another place are short.
const MAX_POINTER_BYTES: u64 = 64 << 10;

impl GitFolders {
    /// Finds the git folders of a work tree. `root` has no symlinks.
    pub(super) fn find(root: &Path, owner: RepositoryOwner) -> Self {
        let dot_git = root.join(".git");
        let Ok(metadata) = dot_git.symlink_metadata() else { return Self::default() };
        if metadata.is_dir() {
            return Self { own: Some(dot_git.clone()), common: Some(dot_git), refused: None };
        }
        let Some(named) = read_gitfile(&dot_git, owner) else { return Self::default() };
        match accept_worktree(&dot_git, &named, owner).or_else(|| accept_submodule(root, &named, owner)) {
            Some((own, common)) => Self { own: Some(own), common: Some(common), refused: None },
            None => Self { refused: Some(named), ..Self::default() },
        }
    }

    /// The common folder, if it is not inside the work tree.
    pub(super) fn outside(&self, root: &Path) -> Option<&Path> {
        self.common.as_deref().filter(|common| !common.starts_with(root))
    }
}

/// The path in a `gitdir: …` file, absolute, as far as it exists.
pub(super) fn read_gitfile(file: &Path, owner: RepositoryOwner) -> Option<PathBuf> {
    let content = read_pointer(file, owner)?;
    let path = content.strip_prefix(b"gitdir:")?.trim_ascii();
    file.parent()?.join(OsStr::from_bytes(path)).canonicalize().ok()
}

/// A linked worktree: `<common>/worktrees/<name>`, which names the work tree's `.git` file.
fn accept_worktree(dot_git: &Path, own: &Path, owner: RepositoryOwner) -> Option<(PathBuf, PathBuf)> {
    let resolve = |file: &str| {
        let content = read_pointer(&own.join(file), owner)?;
        own.join(OsStr::from_bytes(content.trim_ascii())).canonicalize().ok()
    };
    let common = resolve("commondir")?;
    let inside = own.parent()? == common.join("worktrees");
    let names_us = resolve("gitdir")? == dot_git.canonicalize().ok()?;
    let theirs = owner.may_follow_to(own) && owner.may_follow_to(&common);
    (inside && names_us && theirs && is_git_folder(&common, owner)).then(|| (own.to_owned(), common))
}

/// A submodule's work tree, whose git folder names it in `core.worktree`.
fn accept_submodule(root: &Path, own: &Path, owner: RepositoryOwner) -> Option<(PathBuf, PathBuf)> {
    if !owner.may_follow_to(own) || !is_git_folder(own, owner) {
        return None;
    }
    let worktree = core_worktree(&read_pointer(&own.join("config"), owner)?)?;
    let names_us = own.join(OsStr::from_bytes(&worktree)).canonicalize().ok()? == root;
    names_us.then(|| (own.to_owned(), own.to_owned()))
}

/// Whether a folder is what git calls one: a `HEAD` that reads like one, `objects` and `refs`.
fn is_git_folder(folder: &Path, owner: RepositoryOwner) -> bool {
    let is_dir = |name: &str| folder.join(name).symlink_metadata().is_ok_and(|m| m.is_dir());
    let head = read_pointer(&folder.join("HEAD"), owner).unwrap_or_default();
    let head = head.trim_ascii();
    let reads_like_head = head.starts_with(b"ref: refs/")
        || (matches!(head.len(), 40 | 64) && head.iter().all(u8::is_ascii_hexdigit));
    reads_like_head && is_dir("objects") && is_dir("refs")
}

/// The object folders that a git folder borrows from, directly or not, without those inside `root`.
/// They become visible, read-only.
///
/// What remains possible: a repository that was unpacked with its `.git` folder from a hostile archive can
/// name the objects of another repository of the same owner. It has to know the path, and gets nothing but
/// that repository's history. Those of other owners are refused, so that a server that runs as root does
/// not hand them over, its own least of all.
pub(super) fn alternates(git_folder: &Path, root: &Path, owner: RepositoryOwner) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    let mut level = vec![git_folder.join("objects")];
    for _ in 0..MAX_ALTERNATES_DEPTH {
        let named = level.iter().flat_map(|objects| read_alternates(objects, owner));
        level = named.filter_map(|alternate| alternate.accepted).collect();
        level.retain(|objects| found.insert(objects.clone()));
    }
    found.into_iter().filter(|objects| !objects.starts_with(root)).collect()
}

/// A line of `objects/info/alternates`.
pub(super) struct Alternate {
    /// As it is written.
    pub(super) line: Vec<u8>,
    /// Where it leads, without symlinks, if that is a folder of objects that may be followed.
    pub(super) accepted: Option<PathBuf>,
}

/// What `objects/info/alternates` names.
pub(super) fn read_alternates(objects: &Path, owner: RepositoryOwner) -> Vec<Alternate> {
    let content = read_pointer(&objects.join("info/alternates"), owner).unwrap_or_default();
    let lines = content.split(|&b| b == b'\n').filter(|line| !line.is_empty() && line[0] != b'#');
    let alternate = |line: &[u8]| Alternate {
        line: line.to_owned(),
        accepted: objects
            .join(OsStr::from_bytes(line))
            .canonicalize()
            .ok()
            .filter(|objects| is_object_folder(objects, owner)),
    };
    lines.map(alternate).collect()
}

fn is_object_folder(objects: &Path, owner: RepositoryOwner) -> bool {
    objects.file_name() == Some(OsStr::new("objects"))
        && owner.may_follow_to(objects)
        && objects.parent().is_some_and(|folder| is_git_folder(folder, owner))
        && fs::read_dir(objects).is_ok()
}

/// Reads a small file that names another place.
pub(super) fn read_pointer(file: &Path, owner: RepositoryOwner) -> Option<Vec<u8>> {
    owner.read(file, MAX_POINTER_BYTES)
}

/// Every configuration file in a git folder below `base` and the git folders of submodules inside it, and every
/// folder of objects, as paths from there. Folders that hold only history are not looked into, and links not
/// followed.
pub(super) fn inner_files(base: &ConfinedFolder, git_folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    const HISTORY: [&str; 6] = ["refs", "logs", "hooks", "lfs", "rr-cache", "info"];
    let (mut configs, mut objects) = (Vec::new(), Vec::new());
    let mut folders = vec![PathBuf::new()];
    let mut buffer = Vec::new();
    while let Some(folder) = folders.pop() {
        let Ok(open) = base.folder(&git_folder.join(&folder)) else { continue };
        // What cannot be listed has nothing to show inside either.
        let _ = open.each(&mut buffer, |name, mut kind| {
            if kind == FileType::Unknown {
                kind = open.stat(name)?.as_ref().map_or(kind, kind_of);
            }
            if kind == FileType::RegularFile && (name == "config" || name == "config.worktree") {
                configs.push(folder.join(name));
            } else if kind == FileType::Directory && name == "objects" {
                objects.push(folder.join(name));
            } else if kind == FileType::Directory && !HISTORY.iter().any(|history| name == *history) {
                folders.push(folder.join(name));
            }
            Ok(())
        });
    }
    configs.sort();
    (configs, objects)
}
