//! What one attempt may do.

use std::path::PathBuf;

use cofferdam_core::{Agent, AllowRule, AttemptRef, Budget, Forward, RepoUrl, VendorTool};

/// What the broker lets through for one attempt.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Whose events these are.
    pub attempt: AttemptRef,
    /// Where the sockets are made: `gateway::SOCKET`, and one for each forward. The folder is there already.
    pub folder: PathBuf,
    /// What the forward proxy connects to; `None` where the sandbox has a network of its own and the broker
    /// is there for the model alone.
    pub proxy: Option<Vec<AllowRule>>,
    /// Services on the sandbox's loopback.
    pub forwards: Vec<Forward>,
    /// The routes to the model, if it may use any.
    pub model: Option<ModelGrant>,
    /// The run's own repository, if the broker serves it.
    pub git: Option<GitGrant>,
}

/// How an attempt may use the model.
#[derive(Debug, Clone)]
pub struct ModelGrant {
    /// Which CLI asks; `None` for a plain program.
    pub agent: Option<Agent>,
    /// What the agent sends instead of a key.
    pub placeholder: String,
    /// Whether a request without the placeholder is refused. Needed where the loopback is shared with other
    /// users of the machine; in a sealed sandbox nobody else can reach the socket.
    pub placeholder_required: bool,
    /// The tools that the vendor may run on the agent's behalf.
    pub vendor_tools: Vec<VendorTool>,
    /// What the run may spend.
    pub budget: Budget,
}

/// The one repository that is served with a token.
#[derive(Debug, Clone)]
pub struct GitGrant {
    /// An https address.
    pub url: RepoUrl,
    /// The repository on this machine whose `origin` it is; `None` if the caller named the address.
    pub origin_of: Option<PathBuf>,
    /// The branch that may be pushed, if any.
    pub push: Option<String>,
}
