//! What the collector is told, and what it answers.

use serde::{Deserialize, Serialize};

use crate::raw_path::RawPath;

/// What to compare, and where to put the result. The whole of the collector's knowledge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectJob {
    /// The workspace as it was handed over: read-only layers, the topmost first.
    pub lower: Vec<RawPath>,
    /// What the agent wrote.
    pub written: Written,
    /// The index of the repository's own git, to tell tracked files from ignored ones.
    pub index: Option<RawPath>,
    /// The repository's own `info/exclude`.
    pub exclude: Option<RawPath>,
    /// When the workspace was handed over, in nanoseconds since 1970.
    pub handed_over_ns: i64,
    /// A folder of its own for git, and for `diff.patch` and `collected.json`.
    pub scratch: RawPath,
    /// The git program.
    pub git: RawPath,
}

/// What the agent wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Written {
    /// The upper layer of an overlay: only what was touched.
    Upper {
        /// The layer's folder.
        path: RawPath,
    },
    /// The whole workspace, which was a copy.
    Tree {
        /// The workspace.
        path: RawPath,
        /// What each file was when it was handed over, so that untouched ones need not be read.
        manifest: Option<RawPath>,
    },
}

impl CollectJob {
    /// Name of the patch in the scratch folder.
    pub const PATCH: &'static str = "diff.patch";
    /// Name of the answer in the scratch folder.
    pub const ANSWER: &'static str = "collected.json";
}

/// What the collector found. Paths are text as [`crate::raw_path::escape`] writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Collected {
    /// What is in the patch: the first, if there are very many.
    pub changed: Vec<ChangedPath>,
    /// How many there are.
    pub changed_count: u64,
    /// What the agent made and no patch can or should carry: nested `.git`, devices, sockets, pipes, files
    /// that are too large. The first, if there are very many.
    pub left_out: Vec<String>,
    /// How many there are.
    pub left_out_count: u64,
    /// Files that the agent touched and somebody else has changed in the original meanwhile: the patch
    /// is against their present content.
    pub base_moved: Vec<String>,
    /// How many there are.
    pub base_moved_count: u64,
    /// How many touched files are not in the patch because the base's rules ignore them.
    pub ignored_count: u64,
    /// The first of them.
    pub ignored_sample: Vec<String>,
    /// Size of the patch; 0 means that nothing changed.
    pub patch_bytes: u64,
}

/// One path of the patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPath {
    /// What happened to it.
    pub change: Change,
    /// Where it is now, or was.
    pub path: String,
    /// Where it was, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Added,
    /// Its content or mode changed.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed,
    /// A file became a link, or a link a file.
    Retyped,
}
