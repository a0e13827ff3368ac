//! Which runs a caller wants to see, as it was written: nothing here is checked yet.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::text_schema::{AgentNameText, LaneText, ProjectIdText};

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RunListInput {
    /// In one of these states, with commas between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(
        pattern = "^(queued|running|succeeded|failed|cancelled|timed_out)(,(queued|running|succeeded|failed|cancelled|timed_out))*$"
    )]
    pub state: Option<String>,
    /// Of this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<ProjectIdText>, inline)]
    pub project_id: Option<String>,
    /// Of this named agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<AgentNameText>, inline)]
    pub agent: Option<String>,
    /// In this lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<LaneText>, inline)]
    pub lane: Option<String>,
    /// Of this kind of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^(worker|tester|docser)$")]
    pub role: Option<String>,
    /// At most so many; 50 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^[0-9]{1,19}\\.run_[0-9a-hjkmnp-tv-z]{26}$")]
    pub cursor: Option<String>,
}
