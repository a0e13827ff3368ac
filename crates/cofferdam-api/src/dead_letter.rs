//! Runs that failed for good.

use cofferdam_core::{DeadLetter, RunId, RunState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

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

/// A page of them, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterList {
    /// The letters.
    pub dead_letters: Vec<DeadLetterResponse>,
    /// What to pass as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Which letters to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DeadLettersQuery {
    /// At most so many in one page; 500 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^[0-9]{1,19}\\.run_[0-9a-hjkmnp-tv-z]{26}$")]
    pub cursor: Option<String>,
}
