//! Agents that can be named.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::AgentNameText;

/// An agent that can be named in `options.agent`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentResponse {
    /// What it is called.
    #[schema(value_type = AgentNameText)]
    pub name: String,
    /// Its CLI: `claude_code`, `codex` or `opencode`.
    pub provider: String,
    /// Its model, as the CLI names it; the CLI's own default without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The mode of its runs.
    pub mode: String,
    /// Its policy of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Whether it is a CLI itself, without settings.
    pub built_in: bool,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// The agents.
    pub agents: Vec<AgentResponse>,
}
