//! The read-only layers of an overlay, looked at as the kernel looks at them
//! (Documentation/filesystems/overlayfs.rst).

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use crate::confined::{ConfinedFolder, OpenFolder, is_absent, kind_of};

/// Layers, the topmost first.
#[derive(Debug)]
pub(super) struct Layers(Vec<ConfinedFolder>);

/// Which layers make up a merged folder, the topmost first.
#[derive(Debug, Clone)]
pub(super) struct Merged(Vec<usize>);

/// What the layers show under a name.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing, or something that was hidden.
    Nothing,
    /// A folder.
    Folder(Merged),
    /// Anything else, with the layer that shows it.
    Leaf(usize, Box<Stat>),
}

impl Layers {
    pub(super) fn open<'a>(paths: impl Iterator<Item = &'a Path>) -> io::Result<Self> {
        paths.map(ConfinedFolder::open).collect::<io::Result<_>>().map(Self)
    }

    /// The merged root.
    pub(super) fn root(&self) -> Merged {
        Merged((0..self.0.len()).collect())
    }

    pub(super) fn layer(&self, number: usize) -> &ConfinedFolder {
        &self.0[number]
    }

    /// The lowest layer is the repository; what lies over it is ours.
    pub(super) fn is_repository(&self, number: usize) -> bool {
        number + 1 == self.0.len()
    }

    /// Looks a path up from the root.
    pub(super) fn find(&self, path: &Path) -> io::Result<Found> {
        let mut found = Found::Folder(self.root());
        let mut so_far = PathBuf::new();
        for name in path.iter() {
            let Found::Folder(folder) = found else { return Ok(Found::Nothing) };
            found = self.look_up(&folder, &so_far, name)?;
            so_far.push(name);
        }
        Ok(found)
    }

    /// Looks one name up in a merged folder. A whiteout ends the search; so does a file, which hides
    /// everything below it; folders of all layers down to there are merged.
    pub(super) fn look_up(&self, merged: &Merged, folder: &Path, name: &OsStr) -> io::Result<Found> {
        let path = folder.join(name);
        let mut folders = Vec::new();
        for &number in &merged.0 {
            let Some(stat) = self.0[number].stat(&path)? else { continue };
            if kind_of(&stat) != FileType::Directory {
                if folders.is_empty() && !is_whiteout(&stat, || self.0[number].file(&path)) {
                    return Ok(Found::Leaf(number, Box::new(stat)));
                }
                break;
            }
            folders.push(number);
            if is_opaque(&self.0[number].folder(&path)?) {
                break;
            }
        }
        Ok(if folders.is_empty() { Found::Nothing } else { Found::Folder(Merged(folders)) })
    }

    /// Every name in a merged folder, hidden ones included.
    pub(super) fn names(&self, merged: &Merged, folder: &Path) -> io::Result<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for &number in &merged.0 {
            match self.0[number].folder(folder) {
                Ok(open) => names.extend(open.list()?),
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(names)
    }
}

/// Whether this entry of a layer says "there is nothing here": a character device 0:0, or an empty file
/// with the overlay's mark on it.
pub(super) fn is_whiteout<F: AsFd>(stat: &Stat, open: impl FnOnce() -> io::Result<F>) -> bool {
    match kind_of(stat) {
        FileType::CharacterDevice => stat.st_rdev == 0,
        FileType::RegularFile if stat.st_size == 0 => open().is_ok_and(|file| {
            ["user.overlay.whiteout", "trusted.overlay.whiteout"]
                .iter()
                .any(|mark| rustix::fs::fgetxattr(&file, *mark, &mut [0_u8; 8][..]).is_ok())
        }),
        _ => false,
    }
}

/// Whether this folder of a layer hides the folders of the same name below it.
pub(super) fn is_opaque(folder: &OpenFolder) -> bool {
    ["user.overlay.opaque", "trusted.overlay.opaque"].iter().any(|mark| {
        let mut value = [0_u8; 8];
        rustix::fs::fgetxattr(folder, *mark, &mut value[..]).is_ok_and(|len| &value[..len] == b"y")
    })
}
