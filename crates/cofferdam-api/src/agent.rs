//! Agents that can be named.

use cofferdam_core::NodeId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::{AgentNameText, NodeIdText};

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

/// What a machine has for an agent: nothing was started, and no model was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    /// What it is called.
    #[schema(value_type = AgentNameText)]
    pub agent: String,
    /// Its CLI: `claude_code`, `codex` or `opencode`.
    pub provider: String,
    /// Its model, as the CLI names it; null for the CLI's own default.
    pub model: Option<String>,
    /// The mode of its runs.
    pub mode: String,
    /// Whether its CLI is there; null if its image has one of its own.
    pub installed: Option<bool>,
    /// Where its CLI is, or why it cannot be used; null if its image has one of its own.
    pub cli: Option<String>,
    /// Whether there is something that opens its model.
    pub has_key_or_login: bool,
    /// What that is, never with its value; or what to do about it.
    pub key_or_login: String,
}

/// What one node has for the agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeAgents {
    /// Its id.
    #[schema(value_type = NodeIdText)]
    pub id: NodeId,
    /// What people call it.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// `ok`, or `unavailable` if it did not answer in time.
    #[schema(pattern = "^(ok|unavailable)$")]
    pub status: String,
    /// The agents; none if it did not answer.
    pub agents: Vec<AgentState>,
}

/// What every node has for the agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeAgentsList {
    /// The nodes that were asked.
    pub nodes: Vec<NodeAgents>,
}
