//! What is written down of a container before it is made, for whoever finds its folder later. It holds no secret.

use cofferdam_core::Policy;
use serde::{Deserialize, Serialize};

use crate::local::Identity;
use crate::supervision::Runtime;

/// What outlives the process that made the container, besides the shim's plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ApplePlan {
    /// Who runs it, and ends it.
    pub(crate) runtime: Runtime,
    /// Its name there.
    pub(crate) container: String,
    /// Who the agent is.
    pub(crate) who: Identity,
    /// What it enforces.
    pub(crate) policy: Policy,
}
