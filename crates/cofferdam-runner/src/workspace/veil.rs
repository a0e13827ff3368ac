//! The veil: a layer of ours over the repository that hides masked files and replaces configuration
//! files by cleaned ones. The layer that the agent writes starts empty, so the veil is part of the base
//! and never of the diff.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};

use super::Error;

/// What lies over a folder.
#[derive(Debug, Default)]
pub(super) struct Veil {
    /// Content by path; `None` hides what is there.
    entries: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl Veil {
    pub(super) fn hide(&mut self, path: PathBuf) {
        self.entries.insert(path, None);
    }

    pub(super) fn replace(&mut self, path: PathBuf, content: Vec<u8>) {
        self.entries.insert(path, Some(content));
    }

    /// Every entry: its path, and what is to be seen instead of it.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Path, Option<&[u8]>)> {
        self.entries.iter().map(|(path, content)| (path.as_path(), content.as_deref()))
    }

    /// What is to be seen instead of a file, if it is veiled; `Some(None)` if it is hidden.
    pub(super) fn entry(&self, path: &Path) -> Option<Option<&[u8]>> {
        self.entries.get(path).map(Option::as_deref)
    }

    /// Makes the layer for `over` at `path`, which is new. `None` if there is nothing to veil.
    pub(super) fn build(&self, over: &Path, path: &Path) -> Result<Option<PathBuf>, Error> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        let mut folders = BTreeMap::new();
        self.build_entries(over, path, &mut folders).map_err(|error| Error::writing(path, error))?;
        Ok(Some(path.to_owned()))
    }

    fn build_entries(
        &self,
        over: &Path,
        path: &Path,
        folders: &mut BTreeMap<PathBuf, fs::Metadata>,
    ) -> io::Result<()> {
        make_folder(over, path, Path::new(""), folders)?;
        for (below, content) in &self.entries {
            make_folder(over, path, below.parent().unwrap_or(Path::new("")), folders)?;
            let target = path.join(below);
            match content {
                // A character device 0:0 is the overlay's word for "nothing here"; any user may make
                // this one device.
                None => rustix::fs::mknodat(CWD, &target, FileType::CharacterDevice, Mode::empty(), 0)?,
                Some(content) => {
                    fs::write(&target, content)?;
                    imitate(&over.join(below).symlink_metadata()?, &target)?;
                }
            }
        }
        // Last and from the inside out, since a folder may be closed to writing.
        folders.iter().rev().try_for_each(|(below, original)| imitate(original, &path.join(below)))
    }
}

/// Makes a folder and those above it.
fn make_folder(
    over: &Path,
    path: &Path,
    below: &Path,
    folders: &mut BTreeMap<PathBuf, fs::Metadata>,
) -> io::Result<()> {
    let mut missing: Vec<_> = below.ancestors().take_while(|folder| !folders.contains_key(*folder)).collect();
    while let Some(folder) = missing.pop() {
        fs::create_dir(path.join(folder))?;
        folders.insert(folder.to_owned(), over.join(folder).symlink_metadata()?);
    }
    Ok(())
}

/// Gives a file of ours the owner, mode and time of the one that it stands for. The topmost layer decides
/// what a merged folder looks like: with other modes the agent would lose its right to write there.
fn imitate(original: &fs::Metadata, target: &Path) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(target, Some(original.uid()), Some(original.gid()))?;
    }
    let times = fs::FileTimes::new().set_modified(original.modified()?);
    fs::File::open(target).and_then(|file| file.set_times(times))?;
    fs::set_permissions(target, fs::Permissions::from_mode(original.mode() & 0o777))
}
