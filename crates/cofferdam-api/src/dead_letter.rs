//! Runs that failed for good.

use cofferdam_core::{DeadLetter, RunId, RunState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::RunIdText;

/// A run that failed for good, kept for a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterResponse {
    /// The run.
    #[schema(value_type = RunIdText)]
    pub run_id: RunId,
    /// What is kept of it, without secrets.
    #[schema(value_type = Object)]
    pub letter: DeadLetter,
    /// The newest run that replays it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunIdText>)]
    pub replayed_by: Option<RunId>,
    /// Where that run stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub replay_state: Option<RunState>,
}

/// All of them, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterList {
    /// The letters.
    pub dead_letters: Vec<DeadLetterResponse>,
}
