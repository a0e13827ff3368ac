//! The nodes that execute runs.

use cofferdam_core::NodeId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::schema::NodeIdText;

/// A node, as it last told of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeResponse {
    /// Its id.
    #[schema(value_type = NodeIdText)]
    pub id: NodeId,
    /// What people call it.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// Its version.
    pub version: String,
    /// The work that it takes.
    pub roles: Vec<String>,
    /// How many runs it executes at once.
    pub capacity: u32,
    /// How many it executes now.
    pub running: u32,
    /// Whether it takes more, and why not.
    #[schema(value_type = Object)]
    pub health: Value,
    /// Each of its modes, and what is missing if it cannot be used.
    #[schema(value_type = Vec<Object>)]
    pub modes: Vec<Value>,
    /// When it was started.
    pub started_at_ms: u64,
    /// When it last told of itself.
    pub seen_at_ms: u64,
    /// Whether it has told of itself lately.
    pub live: bool,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    /// The nodes.
    pub nodes: Vec<NodeResponse>,
}
