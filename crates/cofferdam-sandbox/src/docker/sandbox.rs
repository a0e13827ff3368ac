//! One container: how it is attached to, waited for and ended.

use std::collections::HashMap;
use std::io;
use std::process::ChildStdin;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bollard::Docker;
use bollard::query_parameters::{ContainerArchiveInfoOptions, ListVolumesOptions, RemoveVolumeOptions};
use cofferdam_core::{InsideSeal, OutsideSeal, SandboxExit, SandboxId, inside};

use super::engine::{self, Engine, Stdin, attach_stdin, is_done, is_missing, message_of, remove_container};
use super::plan::{ContainerPlan, Started, label, name_of};
use super::{first_process, log, watcher};
use crate::backend::{Exchange, OpenError, Output, Process, Sandbox};
use crate::container;
use crate::folder::{Folder, Record};
use crate::linux::{ProcessRecord, ids};
use crate::local::{Agent, Layers, LocalExchange};
use crate::options::Options;
use crate::remove::remove_tree;

/// How long a watcher has to notice that its container is gone before it is ended itself.
const WATCHER_DEADLINE: Duration = Duration::from_secs(5);

/// A container of this machine's engine.
pub(crate) struct DockerSandbox {
    pub(super) exchange: LocalExchange,
    /// `None` if it never got as far as being planned: then there is nothing but a folder to remove.
    pub(super) plan: Option<ContainerPlan>,
    pub(super) engine: Engine,
    /// The number of the state folder, which everything of ours is labelled with at the engine.
    pub(super) state: String,
    /// Held by an attached sandbox: its watcher ends it when this is closed, however that happens.
    pub(super) owner: Mutex<Option<ChildStdin>>,
    /// Taken when it was started, for who attaches first.
    pub(super) stdin: Mutex<Option<Stdin>>,
}

/// The exchange with a container, as far as it was planned.
pub(super) fn exchange(folder: Folder, plan: Option<&ContainerPlan>, options: &Options) -> LocalExchange {
    let agent = Agent::Container(plan.map(|plan| plan.who));
    let exchange = LocalExchange::unplanned(folder, agent, options);
    match plan {
        Some(plan) => LocalExchange { layers: plan.layers.clone(), ..exchange },
        None => exchange,
    }
}

impl DockerSandbox {
    fn folder(&self) -> &Folder {
        &self.exchange.folder
    }

    fn error(&self, action: &'static str) -> impl FnOnce(io::Error) -> OpenError + use<> {
        OpenError::io(self.folder().id(), action)
    }

    async fn docker(&self) -> Result<Docker, OpenError> {
        let connected = self.engine.connect().await;
        connected.map_err(|refusal| self.error("reach the engine")(io::Error::other(refusal.problem)))
    }

    fn engine_error(&self, action: &'static str, error: &bollard::errors::Error) -> OpenError {
        self.error(action)(io::Error::other(message_of(error)))
    }

    fn container(&self) -> String {
        name_of(self.folder().id())
    }

    fn planned(&self) -> Result<&ContainerPlan, OpenError> {
        let missing = || self.error("find the plan")(io::ErrorKind::NotFound.into());
        self.plan.as_ref().ok_or_else(missing)
    }

    async fn remove_at_engine(&self) -> Result<(), OpenError> {
        let docker = match self.docker().await {
            Ok(docker) => docker,
            // It was never planned, so the engine was never asked for it.
            Err(_) if self.plan.is_none() => return Ok(()),
            Err(error) => return Err(error),
        };
        if let (Some(plan), Ok(Some(started))) = (&self.plan, self.folder().read(Record::Started)) {
            return self.remove_started(&docker, plan, &started).await;
        }
        let ours =
            self.is_ours(&docker).await.map_err(|error| self.engine_error("find the container", &error))?;
        if ours {
            self.empty_work_folders(&docker).await;
            remove_container(&docker, &self.container())
                .await
                .map_err(|error| self.engine_error("remove the container", &error))?;
        }
        // By their labels, since the plan may be gone with the folder.
        let labels =
            [format!("{}={}", label::STATE, self.state), format!("{}={}", label::SANDBOX, self.id())];
        let filters = HashMap::from([("label".to_owned(), labels.into())]);
        let listed = docker.list_volumes(Some(ListVolumesOptions { filters: Some(filters) })).await;
        let listed = listed.map_err(|error| self.engine_error("find the volumes", &error))?;
        for volume in listed.volumes.unwrap_or_default() {
            self.remove_volume(&docker, &volume.name).await?;
        }
        Ok(())
    }

    /// One that was started is known by its number, and its volumes were looked at when they were made: nobody has to
    /// be asked whose they are.
    async fn remove_started(
        &self,
        docker: &Docker,
        plan: &ContainerPlan,
        started: &Started,
    ) -> Result<(), OpenError> {
        self.empty_work_folders(docker).await;
        remove_container(docker, &started.container)
            .await
            .map_err(|error| self.engine_error("remove the container", &error))?;
        for volume in &plan.volumes {
            self.remove_volume(docker, volume).await?;
        }
        Ok(())
    }

    async fn remove_volume(&self, docker: &Docker, name: &str) -> Result<(), OpenError> {
        match docker.remove_volume(name, Some(RemoveVolumeOptions { force: true })).await {
            Err(error) if !is_missing(&error) => Err(self.engine_error("remove a volume", &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The kernel keeps whiteouts in an overlay's work folder, which is root's if root mounted it: then an ordinary user
    /// cannot remove it. Whoever mounts the overlay again empties that folder first, and an engine mounts the volumes of
    /// a container that has ended when it is asked for one of its files.
    async fn empty_work_folders(&self, docker: &Docker) {
        let is_overlay = matches!(self.exchange.layers, Layers::Overlay { .. });
        if !is_overlay || rustix::process::geteuid().is_root() {
            return;
        }
        let options = ContainerArchiveInfoOptions { path: inside::WORKSPACE.to_owned() };
        let asked = match engine::kill(docker, &self.container()).await {
            Ok(()) => docker.get_container_archive_info(&self.container(), Some(options)).await.map(drop),
            Err(error) => Err(error),
        };
        // If something stays, removing the folder says so.
        if let Err(error) = asked {
            tracing::debug!(sandbox.id = %self.id(), error = message_of(&error), "the overlay was not mounted again");
        }
    }

    async fn ask_for_first(&self) -> Option<ProcessRecord> {
        let docker = self.docker().await.ok()?;
        let found = docker.inspect_container(&self.container(), None).await.ok()?;
        first_process::of(&found)
    }

    /// The owner of an attached container stays its owner.
    fn ensure_watched(&self) -> io::Result<()> {
        let attached = self.plan.as_ref().is_some_and(|plan| plan.attached);
        let pipe = watcher::ensure(self.folder(), &self.exchange.options.binary, attached)?;
        let mut owner = self.owner.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if pipe.is_some() && owner.is_some() {
            *owner = pipe;
        }
        Ok(())
    }

    /// Whether the container is there and ours. A name alone proves nothing: others may have taken it.
    async fn is_ours(&self, docker: &Docker) -> Result<bool, bollard::errors::Error> {
        match docker.inspect_container(&self.container(), None).await {
            Ok(found) => {
                let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
                Ok(labels.get(label::STATE) == Some(&self.state))
            }
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl Sandbox for DockerSandbox {
    fn id(&self) -> &SandboxId {
        self.folder().id()
    }

    async fn measure(&self, inside: &InsideSeal) -> Result<OutsideSeal, OpenError> {
        Ok(container::outside(inside, &self.planned()?.policy))
    }

    async fn output(&self) -> Result<Output, OpenError> {
        match self.docker().await {
            Ok(docker) => Ok(log::follow(docker, self.container(), self.folder().clone())),
            // Its watcher says what became of it; what it printed is lost with the engine.
            Err(_) if self.folder().has(Record::Exit) => Ok(Box::pin(tokio::io::empty())),
            Err(error) => Err(error),
        }
    }

    async fn attach(&self) -> Result<Process, OpenError> {
        let stdout = self.output().await?;
        let taken = self.stdin.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let stdin = match (taken, self.docker().await) {
            (Some(stdin), _) => stdin,
            (None, Ok(docker)) => {
                // One that has ended takes nothing; what it printed can still be read.
                attach_stdin(&docker, &self.container()).await.unwrap_or_else(|_| Box::pin(tokio::io::sink()))
            }
            (None, Err(_)) => Box::pin(tokio::io::sink()),
        };
        Ok(Process { stdin, stdout })
    }

    async fn wait_for_processes(&self) -> Result<(), OpenError> {
        let first = match self.folder().read(Record::First) {
            Ok(Some(first)) => Some(first),
            Ok(None) | Err(_) => self.ask_for_first().await,
        };
        match first.map(ProcessRecord::watch).transpose().map_err(self.error("watch the container"))? {
            // It is the first of its namespace: the kernel has ended every other one before it is gone.
            Some(Some(first)) => first.readable().await.map(drop).map_err(self.error("watch the container")),
            Some(None) => Ok(()),
            // It has ended, or is on a kernel of its own.
            None => self.wait().await.map(drop),
        }
    }

    async fn wait(&self) -> Result<SandboxExit, OpenError> {
        loop {
            let exit = self.folder().read(Record::Exit).map_err(self.error("read the end"))?;
            if let Some(exit) = exit {
                return Ok(exit);
            }
            if self.plan.is_none() || !self.folder().exists() {
                return Ok(SandboxExit::unknown());
            }
            // A watcher that died leaves its container running; another takes over.
            self.ensure_watched().map_err(self.error("watch the container"))?;
            watcher::ended(self.folder()).await.map_err(self.error("wait for the watcher"))?;
        }
    }

    async fn kill(&self) -> Result<(), OpenError> {
        if self.plan.is_none() || self.folder().has(Record::Exit) {
            return Ok(());
        }
        // Said before it is done, so that nobody takes it for a stranger's deed.
        self.folder().write(Record::Killed, &()).map_err(self.error("record the kill"))?;
        let docker = self.docker().await?;
        match engine::kill(&docker, &self.container()).await {
            Err(error) if !is_done(&error) => Err(self.engine_error("kill the container", &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn exchange(&self) -> &dyn Exchange {
        &self.exchange
    }

    async fn destroy(&self) -> Result<(), OpenError> {
        if !self.folder().exists() {
            return Ok(());
        }
        self.remove_at_engine().await?;
        watcher::end(self.folder(), WATCHER_DEADLINE).await.map_err(self.error("end the watcher"))?;
        let folder = self.folder().leave().map_err(self.error("take the folder away"))?;
        let removed = tokio::task::spawn_blocking(move || {
            ids::release_of(&folder)?;
            remove_tree(folder.path())
        });
        removed
            .await
            .unwrap_or_else(|panic| Err(io::Error::other(panic)))
            .map_err(self.error("remove what is left"))
    }
}
