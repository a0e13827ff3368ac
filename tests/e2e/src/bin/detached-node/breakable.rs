//! A real backend that can be broken from outside.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_core::{Mode, NodeId, Policy, SandboxId, WallPlan};
use cofferdam_sandbox::{Backend, CreateError, Finding, Listed, OpenError, Refusal, Sandbox, SandboxSpec};

/// Makes no sandbox as long as a file is there.
pub(crate) struct Breakable {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) broken_while: PathBuf,
}

#[async_trait]
impl Backend for Breakable {
    fn mode(&self) -> Mode {
        self.backend.mode()
    }

    async fn check(&self, node: &NodeId) -> Vec<Finding> {
        self.backend.check(node).await
    }

    async fn validate(&self, policy: &Policy) -> Result<(), Refusal> {
        self.backend.validate(policy).await
    }

    fn wall_plan(&self, id: &SandboxId, policy: &Policy, companions: &[PathBuf]) -> WallPlan {
        self.backend.wall_plan(id, policy, companions)
    }

    fn base_env(&self, policy: &Policy) -> BTreeMap<String, String> {
        self.backend.base_env(policy)
    }

    fn host_name(&self, policy: &Policy) -> Option<&str> {
        self.backend.host_name(policy)
    }

    fn can_layer(&self, owner: u32) -> bool {
        self.backend.can_layer(owner)
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError> {
        match self.broken_while.exists() {
            true => {
                Err(CreateError::Failed { id: spec.id.clone(), message: "the test has broken it".to_owned() })
            }
            false => self.backend.create(spec).await,
        }
    }

    async fn list(&self) -> Result<Vec<Listed>, OpenError> {
        self.backend.list().await
    }

    async fn open(&self, id: &SandboxId) -> Result<Box<dyn Sandbox>, OpenError> {
        self.backend.open(id).await
    }
}
