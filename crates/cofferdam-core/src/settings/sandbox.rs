//! How sandboxes are made: the key `sandbox`.

use serde::{Deserialize, Serialize};

use super::{ContainerNetwork, Cpus, EngineAddress, MemorySize, OciRuntime, PidsLimit, RuntimeCommand};
use crate::image::ImageReference;
use crate::loopback::RewriteLoopback;
use crate::policy::PathMappingMode;

/// How sandboxes are made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSettings {
    /// Containers of a Docker engine.
    pub docker: DockerSettings,
    /// Containers of a program with a command line like `docker`'s.
    pub apple: AppleSettings,
    /// Which variables with a loopback address are rewritten for containers with an open network.
    pub rewrite_loopback: RewriteLoopback,
    /// Where agents see the folder that they work in.
    pub path_mapping_mode: PathMappingMode,
}

/// Containers of a Docker engine. A limit that is not set is the policy's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DockerSettings {
    /// The image.
    pub image: ImageReference,
    /// The network for `--network open`.
    pub network: ContainerNetwork,
    /// Memory of all processes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySize>,
    /// Processor time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_limit: Option<PidsLimit>,
    /// The OCI runtime; the engine's default without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<OciRuntime>,
    /// Where the engine listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<EngineAddress>,
}

/// Containers of a program with a command line like `docker`'s: Apple's `container`, podman, nerdctl. A limit that
/// is not set is the policy's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AppleSettings {
    /// The program.
    pub runtime_command: RuntimeCommand,
    /// The image.
    pub image: ImageReference,
    /// The network for `--network open`.
    pub network: ContainerNetwork,
    /// Memory of all processes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySize>,
    /// Processor time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_limit: Option<PidsLimit>,
}

#[cfg(test)]
#[path = "sandbox_tests.rs"]
mod tests;
