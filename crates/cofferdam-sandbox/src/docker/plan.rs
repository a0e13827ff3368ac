//! What is written down of a container before it is made, for whoever finds its folder later. It holds no secret.

use std::path::PathBuf;

use cofferdam_core::{NodeId, Policy};
use serde::{Deserialize, Serialize};

use crate::local::{Identity, Layers};

/// Everything that outlives the process that made the container.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ContainerPlan {
    /// Who made it.
    pub(crate) node: NodeId,
    /// The engine's socket.
    pub(crate) engine: PathBuf,
    /// Its name at the engine.
    pub(crate) container: String,
    /// The engine's volumes that were made for it.
    pub(crate) volumes: Vec<String>,
    /// Whether it ends with the process that made it.
    pub(crate) attached: bool,
    /// When it is asked to end, in milliseconds since 1970.
    pub(crate) deadline_ms: u64,
    /// Folders of the host that the agent writes.
    pub(crate) watched: Vec<PathBuf>,
    /// How much may be in them, with what was there before.
    pub(crate) most_bytes: u64,
    /// Who the agent is.
    pub(crate) who: Identity,
    /// What it enforces.
    pub(crate) policy: Policy,
    /// Where the workspace's files are.
    pub(crate) layers: Layers,
}

/// What is written down once it runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Started {
    /// Its number at the engine: unlike its name, nobody else can have it.
    pub(crate) container: String,
}

/// What a container is called: so that it can be killed by whoever knows the sandbox.
pub(crate) fn name_of(id: &cofferdam_core::SandboxId) -> String {
    format!("cofferdam-{id}")
}

/// Labels of our containers and volumes.
pub(crate) mod label {
    /// The state folder that it belongs to, by a number of its own: an engine may serve several.
    pub(crate) const STATE: &str = "dev.cofferdam.state";
    /// The sandbox.
    pub(crate) const SANDBOX: &str = "dev.cofferdam.sandbox";
    /// The run.
    pub(crate) const RUN: &str = "dev.cofferdam.run";
    /// The number of the attempt.
    pub(crate) const ATTEMPT: &str = "dev.cofferdam.attempt";
    /// What a container was asked that is no sandbox.
    pub(crate) const TRIAL: &str = "dev.cofferdam.trial";
    /// Who asked it.
    pub(crate) const ASKER: &str = "dev.cofferdam.asker";
    /// The node that made it.
    pub(crate) const NODE: &str = "dev.cofferdam.node";
}
