//! How sandboxes are made: the key `sandbox`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::{LimitOverrides, LimitSettings};
use super::{
    ContainerNetwork, Cpus, EngineAddress, FilePattern, ForwardName, ForwardSettings, MaxAttempts,
    MaxConcurrency, MemorySize, OciRuntime, PidsLimit, PolicyName, PolicySettings, RuntimeCommand,
    TimeoutSeconds, VariableName,
};
use crate::image::ImageReference;
use crate::loopback::RewriteLoopback;
use crate::mask::Mask;
use crate::policy::{ContainerPolicy, Limits, Mode, Network, PathMappingMode};

/// How sandboxes are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSettings {
    /// Which sandbox is made: `native`, `docker`, `apple`, or `host`, which is none at all.
    pub mode: Mode,
    /// Seconds that one attempt may take.
    pub timeout_seconds: TimeoutSeconds,
    /// How often a run is tried before it is given up.
    pub max_attempts: MaxAttempts,
    /// Runs at the same time on this machine; 0 is no limit.
    pub max_concurrency: MaxConcurrency,
    /// Names of your variables that are passed on where they are set. Keys of model vendors enter with
    /// `network` `open` alone: otherwise the broker adds them outside.
    pub env_allowlist: Vec<VariableName>,
    /// Where an agent that owns its `working_directory` sees it: at `/workspace`, or at the same path as outside.
    pub path_mapping_mode: PathMappingMode,
    /// What runs can reach. Without it `sealed` for agents, `none` for programs, and `open` in mode `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// How much a run may use. `docker.memory` and the like go before it in their mode.
    pub limits: LimitSettings,
    /// Which files of a workspace are hidden, besides those that are hidden anyway.
    pub mask: MaskSettings,
    /// Bundles of values by name, for `--policy NAME` and the `policy` of an agent. They go before the same keys
    /// of `sandbox`.
    pub policies: BTreeMap<PolicyName, PolicySettings>,
    /// Which variables with a loopback address are rewritten for containers with an open network: `"all"`, or a list
    /// of names. `DATABASE_URL` and `REDIS_URL` always are.
    pub rewrite_loopback: RewriteLoopback,
    /// Services that sealed runs reach on their own loopback, by name, such as
    /// `{"db": {"port": 5432, "target": "127.0.0.1:5432"}}`: for `--forward NAME`, or for every run.
    pub forwards: BTreeMap<ForwardName, ForwardSettings>,
    /// Sandboxes of the kernel's own, in mode `native`.
    pub native: NativeSettings,
    /// Containers of a Docker engine.
    pub docker: DockerSettings,
    /// Containers of a program with a command line like `docker`'s.
    pub apple: AppleSettings,
}

/// Which files of a workspace are hidden: what matches `hide` and not `show`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MaskSettings {
    /// Hidden besides `.env*`, `*.pem`, `*.key` and private ssh keys. A pattern without a slash is compared with
    /// the file's name, one with a slash with its path.
    pub hide: Vec<FilePattern>,
    /// Shown all the same.
    pub show: Vec<FilePattern>,
}

/// Sandboxes of the kernel's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NativeSettings {
    /// Where what a run writes is kept: on the `disk`, and summed up some times a second; or, where root starts it, in `memory`,
    /// in a file system as large as `sandbox.limits.disk`. That counts as the run's memory.
    pub storage: Storage,
}

/// Where what a run writes is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// On the disk, watched.
    #[default]
    Disk,
    /// In memory, in a file system of a fixed size.
    Memory,
}

/// Containers of a Docker engine. A limit that is not set is that of
/// `sandbox.limits`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DockerSettings {
    /// The image: `[HOST[:PORT]/]PATH[:TAG][@sha256:…]`. It is never pulled.
    pub image: ImageReference,
    /// The engine's network for `--network open`; `default` is its own choice.
    pub network: ContainerNetwork,
    /// Memory of all processes together, before `sandbox.limits.memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySize>,
    /// Processors, before `sandbox.limits.cpus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Processes and threads, before `sandbox.limits.pids`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_limit: Option<PidsLimit>,
    /// The OCI runtime, such as `runsc`; the engine's default without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<OciRuntime>,
    /// Where the engine listens, such as `unix:///var/run/docker.sock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<EngineAddress>,
}

/// Containers of a program with a command line like `docker`'s: Apple's `container`, podman, nerdctl. A limit that
/// is not set is that of `sandbox.limits`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AppleSettings {
    /// The program: a name on the PATH or an absolute path, never a shell's line.
    pub runtime_command: RuntimeCommand,
    /// The image: `[HOST[:PORT]/]PATH[:TAG][@sha256:…]`. It is never pulled.
    pub image: ImageReference,
    /// The engine's network for `--network open`; `default` is its own choice.
    pub network: ContainerNetwork,
    /// Memory of all processes together, before `sandbox.limits.memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySize>,
    /// Processors, before `sandbox.limits.cpus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Processes and threads, before `sandbox.limits.pids`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_limit: Option<PidsLimit>,
}

impl SandboxSettings {
    /// What a run may use in a mode: what is set for the mode, before what is set for all.
    #[must_use]
    pub fn limits_in(&self, mode: Mode) -> Limits {
        let mut limits = self.limits.limits();
        let (memory, cpus, pids) = match mode {
            Mode::Host | Mode::Native => (None, None, None),
            Mode::Docker => (self.docker.memory, self.docker.cpus, self.docker.pids_limit),
            Mode::Apple => (self.apple.memory, self.apple.cpus, self.apple.pids_limit),
        };
        LimitOverrides { memory, cpus, pids, ..LimitOverrides::default() }.apply(&mut limits);
        limits
    }

    /// The same under a policy, which goes before it.
    #[must_use]
    pub fn limits_under(&self, policy: Option<&PolicySettings>, mode: Mode) -> Limits {
        let mut limits = self.limits_in(mode);
        if let Some(policy) = policy {
            policy.limits.apply(&mut limits);
        }
        limits
    }

    /// What is hidden under a policy: what is hidden anyway, and what it or these settings add.
    #[must_use]
    pub fn mask_under(&self, policy: Option<&PolicySettings>) -> Mask {
        let mut mask = Mask::default();
        let set = policy.and_then(|policy| policy.mask.as_ref()).unwrap_or(&self.mask);
        mask.hide.extend(set.hide.iter().map(ToString::to_string));
        mask.show.extend(set.show.iter().map(ToString::to_string));
        mask
    }

    /// The variables that are passed on under a policy.
    #[must_use]
    pub fn env_under<'a>(&'a self, policy: Option<&'a PolicySettings>) -> &'a [VariableName] {
        policy.and_then(|policy| policy.env_allowlist.as_ref()).unwrap_or(&self.env_allowlist)
    }

    /// What a container of a mode is made from; `None` for a mode that makes none.
    #[must_use]
    pub fn container_in(&self, mode: Mode) -> Option<ContainerPolicy> {
        let container = match mode {
            Mode::Host | Mode::Native => return None,
            Mode::Docker => self.docker.container(),
            Mode::Apple => self.apple.container(),
        };
        Some(ContainerPolicy { rewrite_loopback: self.rewrite_loopback.clone(), ..container })
    }
}

impl DockerSettings {
    /// What a container is made from.
    #[must_use]
    pub fn container(&self) -> ContainerPolicy {
        ContainerPolicy {
            image: self.image.clone(),
            network: self.network.clone(),
            runtime: self.runtime.clone(),
            ..ContainerPolicy::default()
        }
    }
}

impl AppleSettings {
    /// What a container is made from.
    #[must_use]
    pub fn container(&self) -> ContainerPolicy {
        ContainerPolicy {
            image: self.image.clone(),
            network: self.network.clone(),
            runtime_command: self.runtime_command.clone(),
            ..ContainerPolicy::default()
        }
    }
}

impl Default for SandboxSettings {
    /// The defaults of everything that is set nowhere: those of the policy, where there is one for it.
    fn default() -> Self {
        Self {
            mode: Mode::Native,
            timeout_seconds: TimeoutSeconds::of(600),
            max_attempts: MaxAttempts::of(1),
            max_concurrency: MaxConcurrency::of(0),
            env_allowlist: Vec::new(),
            path_mapping_mode: PathMappingMode::Mapped,
            network: None,
            limits: LimitSettings::default(),
            mask: MaskSettings::default(),
            policies: BTreeMap::new(),
            rewrite_loopback: RewriteLoopback::All,
            forwards: BTreeMap::new(),
            native: NativeSettings::default(),
            docker: DockerSettings::default(),
            apple: AppleSettings::default(),
        }
    }
}

#[cfg(test)]
#[path = "sandbox_tests.rs"]
mod tests;
