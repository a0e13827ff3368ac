//! The processes of services. The names of fields are those of the document that these routes come from.

use cofferdam_core::{DesiredState, NodeId, ProcessKind, ProcessStatus};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::schema::NodeIdText;

/// A process that a service keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessResponse {
    /// Its name: `dispatcher`, `broker`, `worker-1` …
    pub name: String,
    /// The same for people.
    pub label: String,
    /// What it does. A node that runs tasks as processes of the machine says so.
    pub description: String,
    /// What kind of process it is.
    pub kind: ProcessKind,
    /// Whether it can be stopped.
    pub supports_stop: bool,
    /// How it stands.
    pub status: ProcessStatus,
    /// What is wanted of it, also after its service was started again; null if nobody has said anything yet.
    pub desired: Option<DesiredState>,
    /// The process, while there is one.
    pub pid: Option<u32>,
    /// When it was last started.
    pub started_at: Option<String>,
    /// When it last ended.
    pub finished_at: Option<String>,
    /// What it exited with.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How often it was started again.
    pub restarts: u32,
    /// More, for people: that it drains, why it is not started, when it is started again.
    pub message: Option<String>,
    /// Its log, on its machine.
    pub log_path: Option<String>,
    /// What its service is called.
    pub service: String,
    /// Its service's id, to pass as `service`.
    #[schema(value_type = NodeIdText)]
    pub service_id: NodeId,
    /// Its service's machine.
    pub host: Option<String>,
}

/// The processes of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessList {
    /// The processes.
    pub processes: Vec<ProcessResponse>,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessAnswer {
    /// The process.
    pub process: ProcessResponse,
}

/// What came of a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartProcessResponse {
    /// The process.
    pub process: ProcessResponse,
    /// Whether it ran before.
    pub already_running: bool,
    /// Whether it is not started in the environment that is in force.
    pub skipped: bool,
    /// Why it is not.
    pub reason: Option<String>,
}

/// How processes are stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopProcessRequest {
    /// Cancel what they run. Without it their runs go on, and the next start takes them up.
    #[serde(default)]
    pub cancel: bool,
}

/// What came of a stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopProcessResponse {
    /// The process; one that still runs finishes what it has.
    pub process: ProcessResponse,
    /// How many runs were asked to end.
    pub cancelled_runs: usize,
}

/// What came of stopping all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopAllResponse {
    /// Those that were asked to stop.
    pub stopped: Vec<String>,
    /// Those that did not run.
    pub skipped: Vec<String>,
    /// How many runs were asked to end.
    pub cancelled_runs: usize,
    /// The same for people.
    pub message: String,
}

/// Which service is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ProcessQuery {
    /// The id or the name of another service on the same record; the one that is asked without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 64)]
    pub service: Option<String>,
}

/// How much of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ProcessLogQuery {
    /// The id or the name of another service on the same record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 64)]
    pub service: Option<String>,
    /// How many of the last lines; 100 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 10_000)]
    pub lines: Option<u32>,
}

/// The last lines of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessLogResponse {
    /// Whose.
    pub name: String,
    /// Where it is, on its machine.
    pub log_path: String,
    /// The last lines.
    pub lines: Vec<String>,
}

/// What a frame of a log that is followed says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// One line.
    pub line: String,
}
