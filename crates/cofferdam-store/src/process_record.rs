//! The services that keep processes, and the processes that they keep.

use cofferdam_core::{DesiredState, NodeId, PlaceId, ProcessName, ProcessStatus};
use serde::{Deserialize, Serialize};

/// A service on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRecord {
    /// The id of its name in its state folder.
    pub id: NodeId,
    /// Its state folder.
    pub place: PlaceId,
    /// When it was started.
    pub started_at_ms: u64,
    /// When it last told of itself.
    pub seen_at_ms: u64,
    /// What it told.
    pub report: ServiceReport,
}

/// What a service tells of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceReport {
    /// What people call it, such as `main`.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// Where its API listens.
    pub listen: String,
    /// Whether it keeps processes at all: `--no-work` says no.
    pub works: bool,
}

/// A process of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRecord {
    /// Whose it is.
    pub service: NodeId,
    /// Which.
    pub name: ProcessName,
    /// What is wanted of it.
    pub desired: DesiredState,
    /// How often that was changed.
    pub asked: u64,
    /// What its supervisor told of it last.
    pub report: Option<ProcessReport>,
}

/// What a supervisor tells of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Up to which change the supervisor has acted.
    pub heard: u64,
    /// How it stands.
    pub status: ProcessStatus,
    /// The process, while there is one.
    pub pid: Option<u32>,
    /// How often it was started again since somebody started it.
    pub restarts: u32,
    /// When it was last started.
    pub started_at_ms: Option<u64>,
    /// When it last ended.
    pub finished_at_ms: Option<u64>,
    /// What it exited with.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// More, for people.
    pub message: Option<String>,
    /// Its log, on its machine.
    pub log_path: String,
    /// The node that it is, if it executes runs.
    pub node: Option<NodeId>,
}
