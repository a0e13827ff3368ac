//! What a node is asked to find out for somebody who is not on its machine: the API knows the record alone.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::policy::{Mode, Policy};
use crate::settings::Agent;

/// What a node is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NodeTask {
    /// Whether an agent could work now.
    AuthCheck {
        /// What people call it.
        name: String,
        /// Which agent it is.
        agent: Agent,
        /// Its model, as the CLI names it.
        model: Option<String>,
        /// The policy of its runs, whose mode says where it is tried.
        policy: Box<Policy>,
    },
    /// Which CLIs and which keys or logins the machine has for these agents. Nothing is started, and no model is asked.
    Agents {
        /// The agents.
        agents: Vec<AgentQuestion>,
    },
    /// What the machine can enforce, and what to type.
    Doctor {
        /// The sandbox to try.
        mode: Mode,
    },
    /// Whether runs of this policy would start.
    TryMode {
        /// The policy.
        policy: Box<Policy>,
    },
}

/// An agent as the settings name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentQuestion {
    /// What people call it.
    pub name: String,
    /// Which agent it is.
    pub agent: Agent,
    /// Its model, as the CLI names it.
    pub model: Option<String>,
    /// Where its runs are.
    pub mode: Mode,
}

/// What a node found when it tried a mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModeTrial {
    /// Whether runs would start.
    pub usable: bool,
    /// What doctor found, with what to type.
    pub findings: Vec<Value>,
}
