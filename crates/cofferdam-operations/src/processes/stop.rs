//! Stopping processes.

use cofferdam_core::{Action, Actor, DesiredState, NodeId, ProcessName, ProcessStatus, RunId, Subject};
use cofferdam_store::NodeHealth;
use serde_json::json;

use super::{AskedService, Process, ProcessService};
use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

/// How often it is looked whether a node takes nothing new, and how often at most.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(50);
const LOOKS: u32 = 100;

/// A process that was asked to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// How it stands now.
    pub process: Process,
    /// How many runs were asked to end.
    pub cancelled: usize,
}

/// What came of stopping all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedAll {
    /// Those that were asked to stop.
    pub stopped: Vec<ProcessName>,
    /// Those that did not run.
    pub skipped: Vec<ProcessName>,
    /// How many runs were asked to end.
    pub cancelled: usize,
}

impl Operations {
    /// Wants a process to stop: it takes nothing new, and what it runs goes on, unless it is to be cancelled.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn stop_process(
        &self,
        actor: &Actor,
        asked: AskedService<'_>,
        name: &str,
        cancel: bool,
    ) -> Result<Stopped, Error> {
        self.authorise(actor, Action::StopProcess, name, Subject::Nothing).await?;
        let name: ProcessName = name.parse().map_err(Error::ProcessNotFound)?;
        let service = self.service(asked).await?;
        let processes = self.processes_of(&service).await?;
        let needs = |process: &&Process| {
            process.name != ProcessName::Broker && process.desired == Some(DesiredState::Running)
        };
        if name == ProcessName::Broker
            && let Some(node) = processes.iter().find(needs)
        {
            let why = format!("it is the way out of what {} runs; stop that first, or all", node.name);
            return Err(Error::ProcessRefused { name, why });
        }
        let own: Vec<Process> = processes.into_iter().filter(|process| process.name == name).collect();
        let cancelled = self.stop(actor, &service, &own, &name.to_string(), cancel).await?;
        let process = self.settled(&service, name, |_| true).await?;
        Ok(Stopped { process, cancelled })
    }

    /// The same for every process of a service. The broker stays as long as an attempt of its lives.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn stop_all_processes(
        &self,
        actor: &Actor,
        asked: AskedService<'_>,
        cancel: bool,
    ) -> Result<StoppedAll, Error> {
        self.authorise(actor, Action::StopProcess, "all", Subject::Nothing).await?;
        let service = self.service(asked).await?;
        let is_on = |process: &Process| {
            process.desired == Some(DesiredState::Running) || process.report.status == ProcessStatus::Running
        };
        let (on, off): (Vec<_>, Vec<_>) = self.processes_of(&service).await?.into_iter().partition(is_on);
        let cancelled = self.stop(actor, &service, &on, "all", cancel).await?;
        for process in &on {
            self.settled(&service, process.name, |_| true).await?;
        }
        let names = |processes: Vec<Process>| processes.into_iter().map(|process| process.name).collect();
        Ok(StoppedAll { stopped: names(on), skipped: names(off), cancelled })
    }

    /// Returns how many runs were asked to end.
    async fn stop(
        &self,
        actor: &Actor,
        service: &ProcessService,
        processes: &[Process],
        about: &str,
        cancel: bool,
    ) -> Result<usize, Error> {
        let nodes: Vec<NodeId> = processes.iter().filter_map(|process| process.report.node.clone()).collect();
        if cancel {
            // Whoever may not end one of them must not do so by way of its process.
            for run in self.live_of(&nodes).await? {
                self.touchable_run(actor, Action::CancelRun, &run).await?;
            }
        }
        let wanted: Vec<_> = processes.iter().map(|process| (process.name, DesiredState::Stopped)).collect();
        let data = json!({ "service": service.id, "cancel": cancel });
        self.store
            .set_desired(&mandate(actor, Action::StopProcess, about, data), &service.id, &wanted)
            .await?;
        self.store.wake();
        if !cancel {
            return Ok(0);
        }
        self.until_nothing_is_claimed(service, &nodes).await?;
        let runs = self.live_of(&nodes).await?;
        for run in &runs {
            self.cancel_run(actor, run).await?;
        }
        Ok(runs.len())
    }

    async fn live_of(&self, nodes: &[NodeId]) -> Result<Vec<RunId>, Error> {
        let live = self.store.live_runs().await?;
        Ok(live.into_iter().filter(|run| nodes.contains(&run.node)).map(|run| run.attempt.run).collect())
    }

    /// A run that is claimed after this would not be cancelled. A node says itself that it takes nothing new.
    async fn until_nothing_is_claimed(
        &self,
        service: &ProcessService,
        nodes: &[NodeId],
    ) -> Result<(), Error> {
        for _ in 0..LOOKS {
            let claims = self
                .store
                .nodes()
                .await?
                .into_iter()
                .any(|node| nodes.contains(&node.id) && node.report.health != NodeHealth::Draining);
            if !claims || !service.is_live {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}
