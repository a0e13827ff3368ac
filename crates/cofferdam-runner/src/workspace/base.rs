//! What the diff is taken against.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use cofferdam_sandbox::Layers;
use serde::{Deserialize, Serialize};

use crate::artifacts::{CollectJob, Written};
use crate::raw_path::RawPath;

/// The workspace as it was handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// Read-only layers, the topmost first.
    pub layers: Vec<RawPath>,
    /// Set if the workspace is a copy: what each file was.
    pub manifest: Option<RawPath>,
    /// The index of the repository's own git.
    pub index: Option<RawPath>,
    /// The repository's own `info/exclude`.
    pub exclude: Option<RawPath>,
    /// When it was handed over, in nanoseconds since 1970.
    pub handed_over_ns: i64,
}

impl Base {
    /// What the collector is to do. `scratch` is a new folder of its own.
    #[must_use]
    pub fn collect_job(&self, layers: &Layers, scratch: &Path, git: &Path) -> CollectJob {
        let written = match layers {
            Layers::Overlay { upper, .. } => Written::Upper { path: upper.as_path().into() },
            Layers::Folder { path } => {
                Written::Tree { path: path.as_path().into(), manifest: self.manifest.clone() }
            }
        };
        CollectJob {
            lower: self.layers.clone(),
            written,
            index: self.index.clone(),
            exclude: self.exclude.clone(),
            handed_over_ns: self.handed_over_ns,
            scratch: scratch.into(),
            git: git.into(),
        }
    }
}

/// The clock that time stamps of files are compared with. It is never behind theirs, so a file that was
/// written just before the hand-over does not look as if it had been written after.
pub(super) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
