//! How much a run may use, and bundles of what a run must keep to: `sandbox.limits` and `sandbox.policies`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AllowEntry, Cpus, DiskSize, MaskSettings, MaxAttempts, MemorySize, OpenFiles, OutputSize, PidsLimit,
    TimeoutSeconds, VariableName,
};
use crate::policy::{Limits, Mode, Network};

/// How much a run may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Memory of all its processes together.
    pub memory: MemorySize,
    /// Processors.
    pub cpus: Cpus,
    /// Processes and threads.
    pub pids: PidsLimit,
    /// Open files of one process.
    pub open_files: OpenFiles,
    /// What it may print.
    pub output: OutputSize,
    /// What it may write to disk.
    pub disk: DiskSize,
}

/// Limits of a policy: those that it does not name are those of `sandbox`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOverrides {
    /// Memory of all its processes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySize>,
    /// Processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<PidsLimit>,
    /// Open files of one process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<OpenFiles>,
    /// What it may print.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSize>,
    /// What it may write to disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskSize>,
}

/// A policy: what a run must keep to. What it does not name is as `sandbox` says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// Which sandbox is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// What a run can reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// What a sealed run may connect to, besides its model: `HOST:PORT`, or names of sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<AllowEntry>>,
    /// How much it may use.
    pub limits: LimitOverrides,
    /// Seconds that one attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<TimeoutSeconds>,
    /// How often a run is tried before it is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<MaxAttempts>,
    /// Names of your variables that are passed on where they are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_allowlist: Option<Vec<VariableName>>,
    /// Which files of a workspace are hidden, besides those that are hidden anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask: Option<MaskSettings>,
}

impl LimitSettings {
    /// The limits that a sandbox enforces.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.memory.bytes(),
            cpus_milli: self.cpus.milli(),
            pids: self.pids.count(),
            open_files: u64::from(self.open_files.count()),
            output_bytes: self.output.bytes(),
            workspace_bytes: self.disk.bytes(),
        }
    }
}

impl LimitOverrides {
    /// Puts what is set here in the place of what was there.
    pub fn apply(&self, limits: &mut Limits) {
        let Self { memory, cpus, pids, open_files, output, disk } = *self;
        limits.memory_bytes = memory.map_or(limits.memory_bytes, MemorySize::bytes);
        limits.cpus_milli = cpus.map_or(limits.cpus_milli, Cpus::milli);
        limits.pids = pids.map_or(limits.pids, PidsLimit::count);
        limits.open_files = open_files.map_or(limits.open_files, |files| u64::from(files.count()));
        limits.output_bytes = output.map_or(limits.output_bytes, OutputSize::bytes);
        limits.workspace_bytes = disk.map_or(limits.workspace_bytes, DiskSize::bytes);
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            memory: MemorySize::of(2 << 30),
            cpus: Cpus::of_milli(1000),
            pids: PidsLimit::of(256),
            open_files: OpenFiles::of(4096),
            output: OutputSize::of(64 << 20),
            disk: DiskSize::of(10 << 30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_policy() {
        assert_eq!(LimitSettings::default().limits(), Limits::default());
    }
}
