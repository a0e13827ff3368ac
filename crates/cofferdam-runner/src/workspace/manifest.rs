//! What each file of a copied workspace was when it was handed over, so that the collector reads only
//! what was touched.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::confined::changed_at_ns;
use crate::raw_path::RawPath;

/// What each file was. A file whose inode and time of change are the same is the same: no program can
/// set that time, while size and modification time can be forged to hide a change from the diff.
#[derive(Debug, Default, Clone)]
pub(crate) struct Manifest(HashMap<PathBuf, Identity>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    ino: u64,
    changed_at_ns: i128,
    mode: u32,
    size: i64,
}

impl Identity {
    fn of(stat: &Stat) -> Self {
        Self { ino: stat.st_ino, changed_at_ns: changed_at_ns(stat), mode: stat.st_mode, size: stat.st_size }
    }
}

impl Manifest {
    pub(crate) fn insert(&mut self, path: PathBuf, stat: &Stat) {
        self.0.insert(path, Identity::of(stat));
    }

    pub(crate) fn is_unchanged(&self, path: &Path, stat: &Stat) -> bool {
        self.0.get(path) == Some(&Identity::of(stat))
    }

    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let lines: Vec<_> = self.0.iter().map(|(path, identity)| (RawPath(path.clone()), identity)).collect();
        let mut out = BufWriter::new(File::create(path)?);
        serde_json::to_writer(&mut out, &lines)?;
        out.into_inner()?.sync_data()
    }

    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let lines: Vec<(RawPath, Identity)> = serde_json::from_reader(BufReader::new(File::open(path)?))?;
        Ok(Self(lines.into_iter().map(|(path, identity)| (path.0, identity)).collect()))
    }
}
