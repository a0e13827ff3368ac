//! A sandbox that a shim watches: how it is attached to, waited for and ended.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_core::{InsideSeal, OutsideSeal, SandboxExit, SandboxId};
use tokio::net::UnixStream;

use super::plan::ShimPlan;
use super::shim::{INPUT_SOCKET, KILL_SOCKET};
use super::tail;
use crate::backend::{Exchange, OpenError, Process, Sandbox};
use crate::folder::{Folder, Record};
use crate::linux::{HeldProcess, ProcessRecord, cgroup, fixed_size, ids, watch_descriptor};
use crate::local::{Agent, LocalExchange};
use crate::options::Options;
use crate::remove::remove_tree;
use crate::socket;

/// How long a shim has to end its sandbox before it is killed itself, which ends it as well.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) struct ShimSandbox {
    pub(crate) exchange: LocalExchange,
    /// Held by an attached sandbox: the shim ends it when this is closed, however that happens.
    pub(crate) _owner: Option<std::process::ChildStdin>,
}

impl ShimSandbox {
    pub(crate) fn folder(&self) -> &Folder {
        &self.exchange.folder
    }

    fn error(&self, action: &'static str) -> impl FnOnce(io::Error) -> OpenError + use<> {
        OpenError::io(self.folder().id(), action)
    }

    fn shim(&self) -> Result<Option<ProcessRecord>, OpenError> {
        let record = self.folder().read(Record::Process).map_err(self.error("read the shim's record"))?;
        Ok(record.filter(|record: &ProcessRecord| record.is_alive()))
    }

    /// Whether its shim lives.
    pub(crate) fn is_watched(&self) -> Result<bool, OpenError> {
        Ok(self.shim()?.is_some())
    }

    /// Kills what lives, and takes the folder out of the way, so that nothing can start any more.
    pub(crate) async fn end(&self) -> Result<Folder, OpenError> {
        self.kill().await?;
        let folder = self.folder().leave().map_err(self.error("take the folder away"))?;
        // A shim that was just starting has recorded itself in time to be seen here, or will not start.
        let exchange = LocalExchange { folder: folder.clone(), ..self.exchange.clone() };
        let late = Self { exchange, _owner: None };
        late.kill_shim().await?;
        Ok(folder)
    }

    /// Removes what is left of a sandbox that was ended.
    pub(crate) async fn clear(&self, folder: Folder) -> Result<(), OpenError> {
        let plan: Option<ShimPlan> = folder.read(Record::Shim).map_err(self.error("read the plan"))?;
        let removed = tokio::task::spawn_blocking(move || {
            if let Some(cgroup) = plan.and_then(|plan| plan.cgroup) {
                cgroup::end(&cgroup)?;
                cgroup::of_watcher(&cgroup).as_ref().map_or(Ok(()), cgroup::end)?;
            }
            ids::release_of(&folder)?;
            fixed_size::remove(folder.path())?;
            remove_tree(folder.path())
        });
        removed
            .await
            .unwrap_or_else(|panic| Err(io::Error::other(panic)))
            .map_err(self.error("remove what is left"))
    }

    /// Kills the shim, and with it the sandbox, which is tied to it.
    async fn kill_shim(&self) -> Result<(), OpenError> {
        let Some(record) = self.shim()? else { return Ok(()) };
        record.kill().map_err(self.error("kill the shim"))?;
        self.shim_ended().await
    }

    /// The shim; `None` if it is gone.
    fn held_shim(&self) -> Result<Option<HeldProcess>, OpenError> {
        let held = self.shim()?.map(ProcessRecord::hold).transpose().map_err(self.error("watch the shim"))?;
        Ok(held.flatten())
    }

    /// Waits until the shim is gone.
    async fn shim_ended(&self) -> Result<(), OpenError> {
        let Some(shim) = self.held_shim()? else { return Ok(()) };
        let shim = watch_descriptor(shim.into()).map_err(self.error("watch the shim"))?;
        let _ready = shim.readable().await.map_err(self.error("watch the shim"))?;
        Ok(())
    }
}

#[async_trait]
impl Sandbox for ShimSandbox {
    fn id(&self) -> &SandboxId {
        self.folder().id()
    }

    async fn measure(&self, _inside: &InsideSeal) -> Result<OutsideSeal, OpenError> {
        let missing = || self.error("find the measured seal")(io::ErrorKind::NotFound.into());
        let read = self.folder().read(Record::Outside).map_err(self.error("read the measured seal"))?;
        read.ok_or_else(missing)
    }

    async fn attach(&self) -> Result<Process, OpenError> {
        let stdin: std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>> =
            match socket::connect(self.folder().path(), INPUT_SOCKET) {
                Ok(stream) => {
                    stream.set_nonblocking(true).map_err(self.error("reach the worker"))?;
                    Box::pin(UnixStream::from_std(stream).map_err(self.error("reach the worker"))?)
                }
                // It has ended; what it printed can still be read.
                Err(_) => Box::pin(tokio::io::sink()),
            };
        let ended = self.held_shim()?.map(OwnedFd::from);
        let stdout =
            tail::follow(&self.folder().worker_output(), ended).map_err(self.error("read the output"))?;
        Ok(Process { stdin, stdout })
    }

    async fn wait(&self) -> Result<SandboxExit, OpenError> {
        self.shim_ended().await?;
        let exit = self.folder().read(Record::Exit).map_err(self.error("read the end"))?;
        // A shim that died says nothing, and took the sandbox with it.
        Ok(exit.unwrap_or_else(SandboxExit::unknown))
    }

    async fn kill(&self) -> Result<(), OpenError> {
        if self.shim()?.is_none() {
            return Ok(());
        }
        // A shim that does not listen yet has nothing inside that could end well.
        let Ok(_asked) = socket::connect(self.folder().path(), KILL_SOCKET) else {
            return self.kill_shim().await;
        };
        if tokio::time::timeout(KILL_DEADLINE, self.shim_ended()).await.is_ok() {
            return Ok(());
        }
        self.kill_shim().await
    }

    fn exchange(&self) -> &dyn Exchange {
        &self.exchange
    }

    async fn destroy(&self) -> Result<(), OpenError> {
        if !self.folder().exists() {
            return Ok(());
        }
        let folder = self.end().await?;
        self.clear(folder).await
    }
}

/// Opens a sandbox by its folder.
pub(crate) fn open_shim_sandbox(
    folder: Folder,
    agent: Agent,
    options: &Options,
) -> Result<ShimSandbox, OpenError> {
    let id = folder.id().clone();
    if !folder.exists() {
        return Err(OpenError::NotFound(id));
    }
    let plan: Option<ShimPlan> =
        folder.read(Record::Shim).map_err(|source| OpenError::Io { id, action: "read the plan", source })?;
    let exchange = LocalExchange::unplanned(folder, agent, options);
    // Without a plan it never started.
    let exchange = match plan {
        Some(plan) => LocalExchange { layers: plan.layers, ..exchange },
        None => exchange,
    };
    Ok(ShimSandbox { exchange, _owner: None })
}
