//! Where the files of a workspace are on this machine.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where the files of an attempt are, on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Layers {
    /// Read-only layers, the topmost first, and what the agent wrote over them.
    Overlay {
        /// Folders as they were given.
        lower: Vec<PathBuf>,
        /// Overlay layer with what was written; whiteouts are character devices 0:0.
        upper: PathBuf,
    },
    /// The folder itself.
    Folder {
        /// On the host.
        path: PathBuf,
    },
}

impl Layers {
    /// The folder that the agent wrote into.
    pub(crate) fn written(&self) -> &Path {
        match self {
            Self::Overlay { upper, .. } => upper,
            Self::Folder { path } => path,
        }
    }
}
