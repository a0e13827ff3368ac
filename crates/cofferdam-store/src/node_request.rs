//! Questions to nodes, as they are on record.

use cofferdam_core::{NodeId, NodeRequestId, NodeTask};

/// A question to a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNodeRequest {
    /// Its name.
    pub id: NodeRequestId,
    /// Whom it is for; `None` is any node.
    pub node: Option<NodeId>,
    /// What is asked.
    pub task: NodeTask,
    /// What tells equal questions, which have one answer; `None` if each is asked for itself.
    pub share: Option<String>,
    /// When nobody waits for the answer any more.
    pub deadline_ms: u64,
}

/// A question that a node has taken.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeRequest {
    /// Its name.
    pub id: NodeRequestId,
    /// What is asked.
    pub task: NodeTask,
    /// When nobody waits for the answer any more.
    pub deadline_ms: u64,
}

/// A question that was put on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedRequest {
    /// The name to wait under: that of an equal question, if there was one.
    pub id: NodeRequestId,
    /// Whether it was asked just now.
    pub is_new: bool,
}

/// Where a question stands.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestState {
    /// It is not answered.
    Open,
    /// It is answered.
    Answered(serde_json::Value),
    /// It is gone.
    Gone,
}
