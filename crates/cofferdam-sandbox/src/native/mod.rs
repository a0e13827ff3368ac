//! The native backend: Linux namespaces, made by this binary. No daemon, no image, no root.

mod check;
mod create;

use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use cofferdam_core::{Mode, NodeId, Policy, SandboxId, Storage, WallPlan};

use crate::backend::{Backend, CreateError, Finding, Listed, OpenError, Refusal, Sandbox, SandboxSpec};
use crate::folder::{Folder, Record};
use crate::linux::{Holder, holder, ids, limits_of, refusal, system};
use crate::local::{Agent, check_mounts, list};
use crate::machine_name::machine_name;
use crate::options::Options;
use crate::supervision::open_shim_sandbox;
use crate::trials;
use crate::walls::worker_walls;

/// Makes sandboxes out of Linux namespaces.
pub struct NativeBackend {
    options: Options,
    /// Where what agents write is kept.
    storage: Storage,
}

impl NativeBackend {
    /// A backend with these options.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, storage: Storage::Disk }
    }

    /// The same, with what agents write kept elsewhere than on the disk.
    #[must_use]
    pub fn with_storage(self, storage: Storage) -> Self {
        Self { storage, ..self }
    }

    fn folder(&self, id: &SandboxId) -> Folder {
        Folder::new(&self.options.sandboxes(Mode::Native), id)
    }
}

#[async_trait]
impl Backend for NativeBackend {
    fn mode(&self) -> Mode {
        Mode::Native
    }

    async fn check(&self, node: &NodeId) -> Vec<Finding> {
        check::check(self, node).await
    }

    async fn validate(&self, policy: &Policy) -> Result<(), Refusal> {
        if let Some(refusal) = refusal::missing_kernel_features().into_iter().next() {
            return Err(refusal);
        }
        if self.storage == Storage::Memory && !rustix::process::geteuid().is_root() {
            return Err(Refusal::new(
                "only root can keep what a run writes in a file system of its own (`sandbox.native.storage` is `memory`)",
                "set sandbox.native.storage to `disk`, or run it as root",
            ));
        }
        check_mounts(policy)
    }

    fn wall_plan(&self, id: &SandboxId, policy: &Policy, companions: &[PathBuf]) -> WallPlan {
        let name = machine_name(&self.options.state, id);
        let held_by_nobody = matches!(holder(&name, &limits_of(policy)), Holder::Nobody(_));
        WallPlan {
            // A cgroup counts exactly; without one this counts within the sandbox's user namespace.
            processes: (held_by_nobody && !self.options.without.has("limits:cgroup"))
                .then_some(limits_of(policy).pids),
            ..worker_walls(policy, companions, &self.options.without)
        }
    }

    fn base_env(&self, _policy: &Policy) -> BTreeMap<String, String> {
        system::environment(&self.options.caller)
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError> {
        let made = create::create(&self.options, self.storage, self.folder(&spec.id), spec).await?;
        Ok(Box::new(made))
    }

    async fn list(&self) -> Result<Vec<Listed>, OpenError> {
        let listed = list(&self.options.sandboxes(Mode::Native), Record::Shim)?;
        // Marks of sandboxes that died before they had a folder, or whose removal was cut short.
        let _ = ids::release_lost(&self.options.state);
        trials::sweep(&self.options.state);
        Ok(listed)
    }

    async fn open(&self, id: &SandboxId) -> Result<Box<dyn Sandbox>, OpenError> {
        Ok(Box::new(open_shim_sandbox(self.folder(id), Agent::Namespace, &self.options)?))
    }
}
