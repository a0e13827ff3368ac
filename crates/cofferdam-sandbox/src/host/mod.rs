//! The host backend: no isolation at all. It exists for machines and tasks where that is wanted, is never
//! fallen back to, and says what it is wherever a mode is shown.
//!
//! What it does give: a workspace of its own, an environment of named variables only, a wall clock, and
//! an end to the whole tree of processes.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use cofferdam_core::{
    DiskLimit, Mode, Network, NodeId, OutsideSeal, Policy, SandboxId, WallPlan, WorkspaceAccess,
};

use crate::backend::{
    Backend, CreateError, Finding, Listed, OpenError, Refusal, Sandbox, SandboxSpec, Workspace,
};
use crate::errors::failed;
use crate::folder::{Folder, Record};
use crate::local::{Agent, Layers, LocalExchange, list};
use crate::options::Options;
use crate::supervision::{Inner, ShimPlan, discard, open_shim_sandbox, start};

/// Runs agents without a wall.
pub struct HostBackend {
    options: Options,
}

impl HostBackend {
    /// A backend with these options.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    fn folder(&self, id: &SandboxId) -> Folder {
        Folder::new(&self.options.sandboxes(Mode::Host), id)
    }
}

#[async_trait]
impl Backend for HostBackend {
    fn mode(&self) -> Mode {
        Mode::Host
    }

    async fn check(&self, _node: &NodeId) -> Vec<Finding> {
        Vec::new()
    }

    async fn validate(&self, policy: &Policy) -> Result<(), Refusal> {
        if policy.network != Network::Open {
            return Err(Refusal::new(
                format!("the mode `host` cannot keep an agent to network `{}`", policy.network),
                "use --mode native, or say --network open",
            ));
        }
        if !policy.mounts.is_empty() {
            return Err(Refusal::new(
                "the mode `host` has no mounts: the agent sees everything",
                "use --mode native, or leave --mount out",
            ));
        }
        match policy.workspace_access {
            WorkspaceAccess::ReadWrite => Ok(()),
            WorkspaceAccess::ReadOnly => Err(Refusal::new(
                "the mode `host` cannot keep an agent from writing the workspace",
                "use --mode native, or leave --read-only out",
            )),
        }
    }

    fn wall_plan(&self, _id: &SandboxId, _policy: &Policy, _companions: &[PathBuf]) -> WallPlan {
        WallPlan::none()
    }

    fn base_env(&self, _policy: &Policy) -> BTreeMap<String, String> {
        let caller = &self.options.caller;
        let mut env = caller.locale.clone();
        if let Some(home) = &caller.home {
            env.insert("HOME".to_owned(), home.display().to_string());
        }
        let path: Vec<&str> = caller.path.iter().filter_map(|folder| folder.to_str()).collect();
        env.insert("PATH".to_owned(), path.join(":"));
        env
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError> {
        // What is covered elsewhere is in plain sight here, like everything else.
        let (Workspace::Folder { path } | Workspace::Direct { path, .. }) = &spec.workspace else {
            return Err(CreateError::Failed {
                id: spec.id.clone(),
                message: "the mode `host` cannot mount an overlay; it needs a copy".to_owned(),
            });
        };
        let folder = self.folder(&spec.id);
        let layers = Layers::Folder { path: path.clone() };
        // A folder that is there already is another sandbox's, and nothing of it is touched.
        folder.create().map_err(|error| failed(&spec.id, "make the sandbox's folder", &error))?;
        let unplanned = LocalExchange::unplanned(folder, Agent::Caller, &self.options);
        let exchange = LocalExchange { layers, ..unplanned };
        if let Err(error) = prepare(&exchange, spec) {
            discard(exchange).await;
            return Err(failed(&spec.id, "write the plan", &error));
        }
        let binary = self.options.binary.display().to_string();
        let command = [binary, "shim".to_owned(), exchange.folder.path().display().to_string()];
        Ok(Box::new(start(exchange, &command, spec.attachment).await?))
    }

    async fn list(&self) -> Result<Vec<Listed>, OpenError> {
        list(&self.options.sandboxes(Mode::Host), Record::Shim)
    }

    async fn open(&self, id: &SandboxId) -> Result<Box<dyn Sandbox>, OpenError> {
        Ok(Box::new(open_shim_sandbox(self.folder(id), Agent::Caller, &self.options)?))
    }
}

fn prepare(exchange: &LocalExchange, spec: &SandboxSpec) -> io::Result<()> {
    let LocalExchange { folder, layers, .. } = exchange;
    let outside = OutsideSeal {
        namespaces: BTreeMap::new(),
        host_uid: rustix::process::geteuid().as_raw(),
        cgroup: None,
        limits_note: Some("no limits: the mode is `host`".to_owned()),
        workspace_bytes: Some(spec.policy.limits.workspace_bytes),
        disk: DiskLimit::Sampled,
    };
    let watched = vec![layers.written().to_owned()];
    folder.write(Record::Shim, &ShimPlan::new(spec, Inner::Host { outside }, watched, layers))?;
    std::fs::File::create(folder.worker_output()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Caller;

    #[tokio::test]
    async fn a_workspace_that_must_not_be_written_is_refused() {
        let backend = HostBackend::new(Options::new("/state".into(), "/cofferdam".into(), Caller::default()));
        let open = Policy { mode: Mode::Host, network: Network::Open, ..Policy::default() };
        assert_eq!(backend.validate(&open).await, Ok(()));
        let read_only = Policy { workspace_access: WorkspaceAccess::ReadOnly, ..open };
        let refusal = backend.validate(&read_only).await.unwrap_err();
        assert!(refusal.problem.contains("writing the workspace"), "{refusal:?}");
    }
}
