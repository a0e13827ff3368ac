//! What a sandbox must enforce. A policy is pinned to its run when the run is accepted: a retry uses
//! the recorded one, not today's settings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::egress::{Budget, EgressPolicy};
use crate::image::ImageReference;
use crate::loopback::RewriteLoopback;
use crate::mask::Mask;
use crate::settings::{ContainerNetwork, OciRuntime, RuntimeCommand};

/// Paths that are the same inside every sandbox.
pub mod inside {
    /// Where the repository is.
    pub const WORKSPACE: &str = "/workspace";
    /// The private home of the agent.
    pub const HOME: &str = "/home/worker";
    /// Private scratch space.
    pub const TMP: &str = "/tmp";
    /// Shared memory.
    pub const SHM: &str = "/dev/shm";
    /// Our own folder: the binary and the canary.
    pub const RUN: &str = "/run/cofferdam";
    /// Our binary.
    pub const BINARY: &str = "/run/cofferdam/cofferdam";
    /// A folder that the mount table and the file modes leave writable and that only Landlock closes.
    /// A probe that can write here has measured that Landlock is not in force.
    pub const CANARY: &str = "/run/cofferdam/canary";
    /// What an agent's CLI keeps of a conversation, from run to run.
    pub const SESSION: &str = "/run/cofferdam/session";
    /// Where the broker's sockets are; see [`crate::gateway`].
    pub const EGRESS: &str = "/run/cofferdam/egress";
    /// Where the installation of the agent's CLI is, if it is not where it is on the host.
    pub const AGENT: &str = "/run/cofferdam/agent";
    /// Places that no agent may write, which the probe tries besides every mount point.
    pub const CLOSED: [&str; 6] = ["/", "/etc", "/usr", "/var", "/root", "/proc/sys/kernel"];
    /// The user and group id of the agent inside; never 0.
    pub const UID: u32 = 1000;
    /// The user name inside.
    pub const USER: &str = "worker";
}

/// What of ours a sandbox's count of processes includes: the worker's seven threads, and a process that it is
/// starting.
pub const WORKER_PIDS: u64 = 8;

/// How an agent reaches the broker.
pub mod gateway {
    /// The port on the sandbox's loopback, where the sandbox has a loopback of its own.
    pub const PORT: u16 = 3128;
    /// The socket in the folder of the broker that the port leads to.
    pub const SOCKET: &str = "egress.sock";
    /// The path below which Anthropic's interface is.
    pub const ANTHROPIC: &str = "/model/anthropic";
    /// The path below which OpenAI's interface is.
    pub const OPENAI: &str = "/model/openai";
    /// The header of an answer of the broker's own that refuses a call, because a budget of the run is spent. Its value is which.
    pub const BUDGET: &str = "cofferdam-budget";
    /// The path below which the run's own repository is.
    pub const GIT: &str = "/git";

    /// The socket that a forwarded port leads to.
    #[must_use]
    pub fn forward_socket(port: u16) -> String {
        format!("forward-{port}.sock")
    }
}

/// Which backend makes the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case", parse_err_ty = UnknownMode, parse_err_fn = UnknownMode::new)]
pub enum Mode {
    /// No isolation at all.
    Host,
    /// Linux namespaces, made by this binary.
    Native,
    /// A container of an engine that speaks Docker's interface.
    Docker,
    /// A container of a runtime that is started as a command: Apple's `container`, podman.
    Apple,
}

impl Mode {
    /// Whether this mode puts a wall around the agent.
    #[must_use]
    pub fn is_sandboxed(self) -> bool {
        match self {
            Self::Host => false,
            Self::Native | Self::Docker | Self::Apple => true,
        }
    }

    /// Whether the agent's programs come from an image and not from this machine.
    #[must_use]
    pub fn is_container(self) -> bool {
        match self {
            Self::Host | Self::Native => false,
            Self::Docker | Self::Apple => true,
        }
    }
}

/// A mode that does not exist is an error and never a default.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode `{0}` (use `native`, `docker`, `apple` or `host`)")]
pub struct UnknownMode(String);

impl UnknownMode {
    fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// What the agent can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case", parse_err_ty = UnknownNetwork, parse_err_fn = UnknownNetwork::new)]
pub enum Network {
    /// Loopback of its own, and nothing else.
    None,
    /// Loopback of its own, and the broker behind it.
    Sealed,
    /// The backend's network.
    Open,
}

impl Network {
    /// Whether the sandbox has a network of its own, with nothing but loopback.
    #[must_use]
    pub fn is_closed(self) -> bool {
        match self {
            Self::None | Self::Sealed => true,
            Self::Open => false,
        }
    }
}

/// A network mode that does not exist is an error and never a default.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown network `{0}` (use `sealed`, `none` or `open`)")]
pub struct UnknownNetwork(String);

impl UnknownNetwork {
    fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// How much an agent may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory of all its processes together.
    pub memory_bytes: u64,
    /// Processor time per second, in thousandths of one processor.
    pub cpus_milli: u32,
    /// Processes and threads.
    pub pids: u32,
    /// Open files of one process.
    pub open_files: u64,
    /// What it may print, stdout and stderr together.
    pub output_bytes: u64,
    /// What it may write to the workspace, its home and `/tmp` together.
    pub workspace_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 2 << 30,
            cpus_milli: 1000,
            pids: 256,
            open_files: 4096,
            output_bytes: 64 << 20,
            workspace_bytes: 10 << 30,
        }
    }
}

/// What happens where this machine cannot hold the agent to its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitsRule {
    /// The run is refused.
    Required,
    /// The run goes on, and its seal says that the limits are best effort.
    BestEffort,
}

/// Whether a mounted path may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountAccess {
    /// Read only.
    Ro,
    /// Read and write.
    Rw,
}

/// A path of the host that the caller put into the sandbox, at the same path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Absolute, without symlinks.
    pub path: PathBuf,
    /// Whether it may be written.
    pub access: MountAccess,
}

/// Where the agent sees the folder that it works in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathMappingMode {
    /// At [`inside::WORKSPACE`].
    #[default]
    Mapped,
    /// At the path where it is on the host.
    SamePath,
}

/// What the agent may do to the folder that it works in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceAccess {
    /// Read and write. What it writes goes to a layer of its own.
    #[default]
    ReadWrite,
    /// Read. Its home and `/tmp` stay writable.
    ReadOnly,
}

impl WorkspaceAccess {
    /// What is left out of a recorded policy, as it was before there was another.
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What a container is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerPolicy {
    /// The image.
    pub image: ImageReference,
    /// The engine's network of an `open` sandbox.
    pub network: ContainerNetwork,
    /// The engine's runtime, if not its default: `runsc`, `kata`.
    pub runtime: Option<OciRuntime>,
    /// The program that runs the containers of mode `apple`.
    pub runtime_command: RuntimeCommand,
    /// Which of the variables that are passed on lead to the host's loopback, and are to lead there from inside.
    pub rewrite_loopback: RewriteLoopback,
}

/// What the sandbox of a run must enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Which backend.
    pub mode: Mode,
    /// What a container is made from, in the modes that make one.
    #[serde(default)]
    pub container: ContainerPolicy,
    /// What it can reach.
    pub network: Network,
    /// What the broker lets through.
    #[serde(default)]
    pub egress: EgressPolicy,
    /// What it may spend at the model.
    #[serde(default)]
    pub budget: Budget,
    /// How much it may use.
    pub limits: Limits,
    /// Whether the limits may be best effort.
    pub limits_rule: LimitsRule,
    /// Names of the caller's variables that are passed on. Values are read when the attempt starts and
    /// are never stored.
    pub env: Vec<String>,
    /// Paths of the host that are visible inside.
    pub mounts: Vec<Mount>,
    /// Which files of the workspace are hidden.
    pub mask: Mask,
    /// Where the agent sees the folder that it works in.
    #[serde(default)]
    pub path_mapping_mode: PathMappingMode,
    /// What it may do to that folder.
    #[serde(default, skip_serializing_if = "WorkspaceAccess::is_default")]
    pub workspace_access: WorkspaceAccess,
    /// Wall clock of one attempt, from the start of its worker.
    pub timeout_ms: u64,
    /// How long an agent has between being asked to stop and being killed.
    pub grace_ms: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Native,
            container: ContainerPolicy::default(),
            network: Network::None,
            egress: EgressPolicy::default(),
            budget: Budget::default(),
            limits: Limits::default(),
            limits_rule: LimitsRule::Required,
            env: Vec::new(),
            mounts: Vec::new(),
            mask: Mask::default(),
            path_mapping_mode: PathMappingMode::default(),
            workspace_access: WorkspaceAccess::default(),
            timeout_ms: 600_000,
            grace_ms: 1_500,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_tells_of_its_workspace_only_if_that_is_read_only() {
        let ordinary = serde_json::to_value(Policy::default()).unwrap();
        assert_eq!(ordinary.get("workspace_access"), None);
        assert_eq!(serde_json::from_value::<Policy>(ordinary).unwrap(), Policy::default());
        let read_only = Policy { workspace_access: WorkspaceAccess::ReadOnly, ..Policy::default() };
        let recorded = serde_json::to_value(&read_only).unwrap();
        assert_eq!(recorded["workspace_access"], "read_only");
        assert_eq!(serde_json::from_value::<Policy>(recorded).unwrap(), read_only);
    }
}
