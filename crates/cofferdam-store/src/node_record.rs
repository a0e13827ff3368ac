//! The nodes that execute runs, as they tell of themselves.

use cofferdam_core::{Mode, NodeId, PlaceId, Role};
use serde::{Deserialize, Serialize};

/// A node on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its name.
    pub id: NodeId,
    /// Its state folder.
    pub place: PlaceId,
    /// When it was started.
    pub started_at_ms: u64,
    /// When it last told of itself. One that has not for a while may be gone.
    pub seen_at_ms: u64,
    /// What it told.
    pub report: NodeReport,
}

/// What a node tells of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// What people call it, such as `main`.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// Its version.
    pub version: String,
    /// The work that it takes.
    pub roles: Vec<Role>,
    /// How many runs it executes at once.
    pub capacity: u32,
    /// How many it executes now.
    pub running: u32,
    /// Whether it takes more.
    pub health: NodeHealth,
    /// Each of its modes, and what is missing if it cannot be used.
    pub modes: Vec<ModeReport>,
}

/// Whether a node takes runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NodeHealth {
    /// It does.
    Ready,
    /// It could not make sandboxes several times in a row, and tries again later.
    Resting {
        /// What went wrong last.
        reason: String,
        /// When it tries again.
        until_ms: u64,
    },
    /// It ends what it has, and takes nothing more.
    Draining,
}

/// Whether a mode can be used on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeReport {
    /// Which.
    pub mode: Mode,
    /// What is missing; `None` if nothing is.
    pub missing: Option<String>,
}
