//! Which paths an agent touched, and what was and is there.
//!
//! The walk follows what was written and not the tree: its cost is that of the changes. It keeps no
//! folder open and does not recurse, since an agent can nest folders deeper than there are descriptors
//! or stack.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use super::git_names::{is_git_name, is_refused_as_link};
use super::layers::{Found, Layers, Merged, is_opaque, is_whiteout};
use crate::confined::{ConfinedFolder, MAX_PATH_BYTES, changed_at_ns, kind_of};
use crate::workspace::Manifest;

/// What git can record of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Executable,
    Link,
}

/// Where the content of a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Layer(usize),
    Written,
}

/// A path on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) place: Place,
}

/// A path that the agent touched.
#[derive(Debug)]
pub(super) struct Touched {
    pub(super) path: PathBuf,
    pub(super) before: Option<Node>,
    pub(super) after: Option<Node>,
}

/// Everything the agent touched.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) touched: Vec<Touched>,
    pub(super) left_out: Vec<PathBuf>,
    pub(super) base_moved: Vec<PathBuf>,
}

/// The two sides of the comparison.
#[derive(Debug)]
pub(super) struct Sides<'a> {
    pub(super) lower: &'a Layers,
    pub(super) written: &'a ConfinedFolder,
    /// Set for a whole tree: what it was when it was handed over.
    pub(super) manifest: Option<&'a Manifest>,
    pub(super) handed_over_ns: i64,
    /// Whether what was written is the upper layer of an overlay. In a plain folder the overlay's marks are
    /// the agent's own invention: a file that bears one would be hidden from the diff.
    pub(super) is_layer: bool,
}

/// How a written folder relates to the layers below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// What is not written shows through.
    Merging,
    /// What is not written is gone.
    Whole,
}

enum Step {
    Compare { folder: PathBuf, below: Option<Merged>, reach: Reach },
    Delete { folder: PathBuf, below: Merged },
}

/// Compares what was written with the layers.
pub(super) fn find_changes(sides: &Sides<'_>, reach: Reach) -> io::Result<Changes> {
    let mut walk = Walk { sides, changes: Changes::default(), steps: Vec::new() };
    let root = Some(sides.lower.root());
    walk.steps.push(Step::Compare { folder: PathBuf::new(), below: root, reach });
    while let Some(step) = walk.steps.pop() {
        match step {
            Step::Compare { folder, below, reach } => walk.compare(&folder, below.as_ref(), reach)?,
            Step::Delete { folder, below } => walk.delete_folder(&folder, &below)?,
        }
    }
    let mut changes = walk.changes;
    changes.touched.sort_by(|a, b| a.path.cmp(&b.path));
    changes.left_out.sort();
    changes.base_moved.sort();
    Ok(changes)
}

struct Walk<'a> {
    sides: &'a Sides<'a>,
    changes: Changes,
    steps: Vec<Step>,
}

impl Walk<'_> {
    fn compare(&mut self, folder: &Path, below: Option<&Merged>, reach: Reach) -> io::Result<()> {
        let open = match self.sides.written.folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // The agent took its own right to read it away. Git could not record it either.
                self.changes.left_out.push(folder.to_owned());
                return Ok(());
            }
            open => open?,
        };
        let written = open.list()?;
        for name in &written {
            let path = folder.join(name);
            if self.is_git(folder, name, &path) {
                continue;
            }
            let Some(stat) = open.stat(name)? else { continue };
            let found = self.look_up(below, folder, name)?;
            self.compare_entry(path, &stat, found, reach)?;
        }
        if let (Reach::Whole, Some(below)) = (reach, below) {
            for name in self.sides.lower.names(below, folder)? {
                let path = folder.join(&name);
                let stays = written.binary_search(&name).is_ok();
                if !stays && !self.is_git(folder, &name, &path) {
                    let found = self.look_up(Some(below), folder, &name)?;
                    self.delete(path, found);
                }
            }
        }
        Ok(())
    }

    fn compare_entry(&mut self, path: PathBuf, stat: &Stat, found: Found, reach: Reach) -> io::Result<()> {
        if path.as_os_str().len() > MAX_PATH_BYTES {
            self.changes.left_out.push(path);
            return Ok(());
        }
        if self.sides.is_layer && is_whiteout(stat, || self.sides.written.file(&path)) {
            self.delete(path, found);
            return Ok(());
        }
        if kind_of(stat) == FileType::Directory {
            return self.compare_folder(path, found, reach);
        }
        let is_refused = |node: &Node| node.kind == Kind::Link && is_refused_as_link(&path);
        let after = node(stat, Place::Written).filter(|node| !is_refused(node));
        if after.is_none() {
            self.changes.left_out.push(path.clone());
        }
        let before = match found {
            Found::Leaf(layer, before) => {
                self.note_if_moved(&path, layer, &before);
                node(&before, Place::Layer(layer))
            }
            Found::Folder(below) => {
                self.steps.push(Step::Delete { folder: path.clone(), below });
                None
            }
            Found::Nothing => None,
        };
        let untouched = self.sides.manifest.is_some_and(|manifest| manifest.is_unchanged(&path, stat));
        if !untouched && (before.is_some() || after.is_some()) {
            self.changes.touched.push(Touched { path, before, after });
        }
        Ok(())
    }

    fn compare_folder(&mut self, path: PathBuf, found: Found, reach: Reach) -> io::Result<()> {
        let (below, reach) = match found {
            // A folder that was removed and made again hides what was there before.
            Found::Folder(below) if reach == Reach::Merging => {
                let whole = self.sides.written.folder(&path).is_ok_and(|open| is_opaque(&open));
                (Some(below), if whole { Reach::Whole } else { Reach::Merging })
            }
            Found::Folder(below) => (Some(below), Reach::Whole),
            leaf @ Found::Leaf(..) => {
                self.delete(path.clone(), leaf);
                (None, Reach::Whole)
            }
            Found::Nothing => (None, Reach::Whole),
        };
        self.steps.push(Step::Compare { folder: path, below, reach });
        Ok(())
    }

    fn delete(&mut self, path: PathBuf, found: Found) {
        match found {
            Found::Nothing => {}
            Found::Folder(below) => self.steps.push(Step::Delete { folder: path, below }),
            Found::Leaf(layer, before) => {
                self.note_if_moved(&path, layer, &before);
                let before = node(&before, Place::Layer(layer));
                if before.is_some() {
                    self.changes.touched.push(Touched { path, before, after: None });
                }
            }
        }
    }

    fn delete_folder(&mut self, folder: &Path, below: &Merged) -> io::Result<()> {
        for name in self.sides.lower.names(below, folder)? {
            let path = folder.join(&name);
            if !self.is_git(folder, &name, &path) {
                let found = self.look_up(Some(below), folder, &name)?;
                self.delete(path, found);
            }
        }
        Ok(())
    }

    fn look_up(&self, below: Option<&Merged>, folder: &Path, name: &OsStr) -> io::Result<Found> {
        match below {
            Some(below) => self.sides.lower.look_up(below, folder, name),
            None => Ok(Found::Nothing),
        }
    }

    /// Whether this is a git folder or git file, which are never part of the patch. The repository's own
    /// is expected to change; a nested one that changed is reported. `git apply` refuses such paths,
    /// and rightly: the configuration of a planted repository runs programs as soon as the user's own
    /// git looks into it (docs/decisions/0002-nested-git.md).
    fn is_git(&mut self, folder: &Path, name: &OsStr, path: &Path) -> bool {
        if !is_git_name(name) {
            return false;
        }
        let known = self.sides.manifest.is_some_and(|manifest| manifest.contains(path));
        let own = folder.as_os_str().is_empty() && name == ".git";
        if !own && !known {
            self.changes.left_out.push(path.to_owned());
        }
        true
    }

    /// The lower layer of an overlay is the user's own folder, who may work on while the agent does.
    fn note_if_moved(&mut self, path: &Path, layer: usize, before: &Stat) {
        let moved = changed_at_ns(before) > i128::from(self.sides.handed_over_ns);
        if moved && self.sides.manifest.is_none() && self.sides.lower.is_repository(layer) {
            self.changes.base_moved.push(path.to_owned());
        }
    }
}

fn node(stat: &Stat, place: Place) -> Option<Node> {
    let kind = match kind_of(stat) {
        FileType::Symlink => Kind::Link,
        FileType::RegularFile if stat.st_mode & 0o100 != 0 => Kind::Executable,
        FileType::RegularFile => Kind::File,
        _ => return None,
    };
    Some(Node { kind, place })
}
