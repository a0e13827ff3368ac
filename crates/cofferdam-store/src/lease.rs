//! The right to write about one attempt.

use cofferdam_core::{AttemptRef, NodeId, RunRequest};

/// The right to write about one attempt. Only claiming and adopting give one.
///
/// Its token fences: the next claim or adoption of the run moves the token on, and every write with
/// an older one is refused, however late it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    attempt: AttemptRef,
    node: NodeId,
    token: u64,
}

impl Lease {
    pub(crate) fn new(attempt: AttemptRef, node: NodeId, token: u64) -> Self {
        Self { attempt, node, token }
    }

    /// The attempt that it is for.
    #[must_use]
    pub fn attempt(&self) -> &AttemptRef {
        &self.attempt
    }

    /// Who holds it.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// Its fencing token, which grows with every claim and adoption of the run.
    #[must_use]
    pub fn token(&self) -> u64 {
        self.token
    }
}

/// A run that a node has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// What was asked.
    pub request: RunRequest,
    /// Which try this is.
    pub attempt: AttemptRef,
    /// The right to write about it.
    pub lease: Lease,
}
