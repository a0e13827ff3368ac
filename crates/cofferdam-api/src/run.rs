//! Runs, as they are told of.

use cofferdam_core::{NodeId, Outcome, RunId, RunRequest, RunState, SandboxId, Seal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::{NodeIdText, RunIdText, SandboxIdText};

/// The most runs of one page.
pub const MOST_RUNS: u32 = 500;

/// Everything about a run but its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunResponse {
    /// Its id.
    #[schema(value_type = RunIdText)]
    pub id: RunId,
    /// Where it stands: `queued`, `running`, `succeeded`, `failed`, `cancelled` or `timed_out`.
    #[schema(value_type = String, pattern = "^(queued|running|succeeded|failed|cancelled|timed_out)$")]
    pub state: RunState,
    /// The sandbox of its newest attempt; of the first, if there was none yet.
    #[schema(value_type = SandboxIdText)]
    pub sandbox_id: SandboxId,
    /// Whose it is: the owner of the key that made it.
    pub owner: String,
    /// What was asked, as it was understood.
    #[schema(value_type = Object)]
    pub request: RunRequest,
    /// How many attempts were started.
    pub attempts: u32,
    /// How the last attempt ended, once the run is final.
    #[schema(value_type = Option<Object>)]
    pub outcome: Option<Outcome>,
    /// The seal of the last attempt, if one was measured. Lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub seal: Option<Seal>,
    /// When somebody asked for its end.
    pub cancel_requested_at_ms: Option<u64>,
    /// Whether it is kept for a replay.
    pub dead_letter: bool,
    /// Who holds it.
    #[schema(value_type = Option<NodeIdText>)]
    pub node_id: Option<NodeId>,
    /// When a queued run may be claimed.
    pub not_before_ms: u64,
    /// The number of its newest event.
    pub last_seq: u64,
    /// When it was accepted.
    pub created_at_ms: u64,
    /// When it last changed.
    pub updated_at_ms: u64,
    /// When it got its final state.
    pub finished_at_ms: Option<u64>,
    /// When its events but the first and the last were removed, because they were kept long enough (`retention`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_removed_at_ms: Option<u64>,
    /// When the files that it left were removed, for the same reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_removed_at_ms: Option<u64>,
}

/// A page of runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunResponse>,
    /// What to pass as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One try at a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptResponse {
    /// 1 for the first.
    pub number: u32,
    /// Its sandbox.
    #[schema(value_type = SandboxIdText)]
    pub sandbox_id: SandboxId,
    /// Who began it.
    #[schema(value_type = NodeIdText)]
    pub node_id: NodeId,
    /// How it ended, once it has.
    #[schema(value_type = Option<Object>)]
    pub outcome: Option<Outcome>,
    /// The seal that was measured, if one was.
    #[schema(value_type = Option<Object>)]
    pub seal: Option<Seal>,
    /// When it began.
    pub started_at_ms: u64,
    /// When it ended.
    pub ended_at_ms: Option<u64>,
}

/// What was measured to be in force around each attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SealResponse {
    /// The run.
    #[schema(value_type = RunIdText)]
    pub run_id: RunId,
    /// The mode that was used.
    pub mode: String,
    /// The attempts, the first one first.
    pub attempts: Vec<AttemptResponse>,
}

/// What became of a request to cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelResponse {
    /// The run.
    #[schema(value_type = RunIdText)]
    pub id: RunId,
    /// Its state now: a running run ends when its node has heard of it.
    #[schema(value_type = String)]
    pub state: RunState,
    /// Whether this request has changed anything.
    pub requested: bool,
}
