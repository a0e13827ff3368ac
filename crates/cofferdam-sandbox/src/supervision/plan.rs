//! What a shim is told to do. It is written to the sandbox's folder, for whoever opens the sandbox later. It holds no secret.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cofferdam_core::{NodeId, OutsideSeal};
use serde::{Deserialize, Serialize};

use crate::backend::{Attachment, SandboxSpec};
use crate::linux::NO_LIMITS;
use crate::linux::plan::{CgroupLimits, CgroupPlan};
use crate::local::Layers;

/// What the shim starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Inner {
    /// The launcher of a native sandbox.
    Native,
    /// The worker itself, without a wall. The seal says so.
    Host { outside: OutsideSeal },
    /// The client of a container runtime, in the foreground, so that its stdio is the worker's.
    Runtime {
        runtime: Runtime,
        /// What the container is called.
        container: String,
        arguments: Vec<String>,
    },
}

/// What the shim is told to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ShimPlan {
    /// Who made the sandbox.
    pub(crate) node: NodeId,
    pub(crate) inner: Inner,
    /// Whether the sandbox ends when the shim's stdin does.
    pub(crate) attached: bool,
    pub(crate) timeout_ms: u64,
    pub(crate) grace_ms: u64,
    pub(crate) cgroup: Option<CgroupPlan>,
    pub(crate) limits: CgroupLimits,
    pub(crate) workspace_bytes: u64,
    /// Folders of the host that the agent writes.
    pub(crate) watched: Vec<PathBuf>,
    /// Where the workspace's files are, for whoever opens the sandbox later.
    pub(crate) layers: Layers,
}

impl ShimPlan {
    /// What every shim is told, where no group of ours holds limits.
    pub(crate) fn new(spec: &SandboxSpec, inner: Inner, watched: Vec<PathBuf>, layers: &Layers) -> Self {
        Self {
            node: spec.node.clone(),
            inner,
            attached: spec.attachment == Attachment::Attached,
            timeout_ms: spec.policy.timeout_ms,
            grace_ms: spec.policy.grace_ms,
            cgroup: None,
            limits: NO_LIMITS,
            workspace_bytes: spec.policy.limits.workspace_bytes,
            watched,
            layers: layers.clone(),
        }
    }
}

/// A program with a command line like `docker`'s. It is recorded with every sandbox, for whoever has to end it later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Runtime {
    /// Its path.
    pub(crate) program: PathBuf,
    /// All of its environment.
    pub(crate) env: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Sandboxes outlive the program that made them, and the next one may be newer.
    #[test]
    fn a_plan_is_written_as_it_always_was() {
        let client = json!({
            "runtime": { "program": "/usr/bin/podman", "env": { "HOME": "/root" } },
            "container": "cofferdam-1",
            "arguments": ["run", "image"],
        });
        let overlay = json!({ "Overlay": { "lower": ["/veil", "/repository"], "upper": "/upper-0" } });
        let made = [
            (json!("Native"), overlay, json!({ "V2": { "path": "/sys/fs/cgroup/a" } })),
            (json!({ "Runtime": client }), json!({ "Folder": { "path": "/tree" } }), json!(null)),
        ];
        for (inner, layers, cgroup) in made {
            let plan = json!({
                "node": NodeId::new(1, 1),
                "inner": inner,
                "attached": true,
                "timeout_ms": 1_000,
                "grace_ms": 100,
                "cgroup": cgroup,
                "limits": { "memory_bytes": 1, "cpus_milli": 2, "pids": 3 },
                "workspace_bytes": 4,
                "watched": ["/upper-0"],
                "layers": layers,
            });
            let read: ShimPlan = serde_json::from_value(plan.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), plan);
        }
    }
}
