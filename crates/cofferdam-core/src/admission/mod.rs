//! From what a caller wishes and what the settings say to what a run must keep to. The command line and the service
//! take the same way, so that one text means the same in both.

mod choice;
mod egress;
mod env;
mod mount;
mod policy;
mod spoken;

pub use self::choice::{Asked, Choice, choose};
pub use self::egress::allow_rules;
pub use self::env::{MODEL_KEYS, passed_on};
pub use self::policy::{policy_of, retry_of, system_prompt_of};
pub use self::spoken::Spoken;
use crate::egress::{Budget, Forward};
use crate::image::ImageReference;
use crate::policy::{Mode, Mount, Network};
use crate::publish::BranchName;
use crate::settings::FilePattern;

/// What a caller wishes of one run, each value read on its own. What is left out is as the settings say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// How the caller writes what it wishes.
    pub spoken: Spoken,
    /// The agent: one of the settings, or a CLI by any of its names.
    pub agent: Option<String>,
    /// The kind of work.
    pub role: Option<String>,
    /// A policy of the settings.
    pub policy: Option<String>,
    /// Which sandbox is made.
    pub mode: Option<Mode>,
    /// What the run can reach.
    pub network: Option<Network>,
    /// The container's image.
    pub image: Option<ImageReference>,
    /// What a sealed run may connect to: `HOST:PORT`, or names of sets.
    pub allow: Vec<String>,
    /// Services on the sandbox's loopback.
    pub forwards: Vec<Forward>,
    /// The branch that the agent may push.
    pub push: Option<BranchName>,
    /// Whether a program may use the model, as agents do.
    pub model_access: bool,
    /// Whether the model's vendor may fetch and store on the agent's behalf.
    pub vendor_tools: bool,
    /// What it may spend at the model.
    pub budget: Budget,
    /// Longest time of one attempt.
    pub timeout_ms: Option<u64>,
    /// Memory of all its processes.
    pub memory_bytes: Option<u64>,
    /// Processors, in thousandths.
    pub cpus_milli: Option<u32>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// What it may write to disk.
    pub disk_bytes: Option<u64>,
    /// How often it is tried.
    pub max_attempts: Option<u32>,
    /// Paths that are visible inside.
    pub mounts: Vec<Mount>,
    /// Files that are shown although they look like secrets.
    pub unmask: Vec<FilePattern>,
}
