//! One container: its shim is attached to and waited for, and the container itself is ended by its name.

use std::io;

use async_trait::async_trait;
use cofferdam_core::{InsideSeal, OutsideSeal, SandboxExit, SandboxId};

use super::plan::ApplePlan;
use crate::backend::{Exchange, OpenError, Process, Sandbox};
use crate::container;
use crate::folder::Record;
use crate::supervision::ShimSandbox;

/// A container of a runtime.
pub(crate) struct AppleSandbox {
    pub(super) shim: ShimSandbox,
    /// `None` if it never got as far as being planned: then there is nothing but a folder to remove.
    pub(super) plan: Option<ApplePlan>,
}

impl AppleSandbox {
    fn error(&self, action: &'static str) -> impl FnOnce(io::Error) -> OpenError + use<> {
        OpenError::io(self.shim.folder().id(), action)
    }

    /// Ends a container whose shim has died without recording an end: nobody reads it or holds its limits any more.
    pub(super) async fn end_if_abandoned(&self) -> Result<(), OpenError> {
        let folder = self.shim.folder();
        if self.shim.is_watched()? || folder.has(Record::Exit) || !folder.has(Record::Process) {
            return Ok(());
        }
        self.remove_container(self.plan.clone()).await
    }

    async fn remove_container(&self, plan: Option<ApplePlan>) -> Result<(), OpenError> {
        let Some(plan) = plan else { return Ok(()) };
        let removed = tokio::task::spawn_blocking(move || plan.runtime.remove(&plan.container));
        let removed = removed.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        removed.map_err(self.error("remove the container"))
    }
}

#[async_trait]
impl Sandbox for AppleSandbox {
    fn id(&self) -> &SandboxId {
        self.shim.id()
    }

    async fn measure(&self, inside: &InsideSeal) -> Result<OutsideSeal, OpenError> {
        let missing = || self.error("find the plan")(io::ErrorKind::NotFound.into());
        Ok(container::outside(inside, &self.plan.as_ref().ok_or_else(missing)?.policy))
    }

    async fn attach(&self) -> Result<Process, OpenError> {
        self.shim.attach().await
    }

    async fn wait(&self) -> Result<SandboxExit, OpenError> {
        let exit = self.shim.wait().await?;
        self.end_if_abandoned().await?;
        Ok(exit)
    }

    async fn kill(&self) -> Result<(), OpenError> {
        self.shim.kill().await?;
        self.end_if_abandoned().await
    }

    fn exchange(&self) -> &dyn Exchange {
        self.shim.exchange()
    }

    async fn destroy(&self) -> Result<(), OpenError> {
        if !self.shim.folder().exists() {
            return Ok(());
        }
        let folder = self.shim.end().await?;
        // The shim removes it if it can. If not: only now nobody is left who could make it.
        if !folder.has(Record::Removed) {
            let plan = folder.read(Record::Container).map_err(self.error("read the plan"))?;
            self.remove_container(plan).await?;
        }
        self.shim.clear(folder).await
    }
}
