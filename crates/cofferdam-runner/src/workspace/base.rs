//! What the diff is taken against.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

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

/// The clock that time stamps of files are compared with. It is never behind theirs, so a file that was
/// written just before the hand-over does not look as if it had been written after.
pub(super) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
