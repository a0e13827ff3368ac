//! Reading how processes stand.

use std::collections::BTreeMap;

use cofferdam_core::{
    Action, Actor, DesiredState, Environment, NodeId, ProcessName, ProcessStatus, Subject, iso_time,
};
use cofferdam_store::{ProcessRecord, ProcessReport, ServiceRecord};

use crate::Operations;
use crate::clock::now_ms;
use crate::error::Error;

/// A service that has not told of itself for so long may be gone.
const SILENT_MS: u64 = 30_000;

/// Whose processes are asked for.
#[derive(Debug, Clone, Copy)]
pub struct AskedService<'a> {
    /// The service that is meant unless another is named.
    pub own: &'a NodeId,
    /// The id or the name of another one.
    pub named: Option<&'a str>,
}

/// The service that a process belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessService {
    /// Its id.
    pub id: NodeId,
    /// What it last told of itself, if it is on record.
    pub record: Option<ServiceRecord>,
    /// Whether it has told of itself lately.
    pub is_live: bool,
}

/// A process, as far as the record knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Whose it is.
    pub service: ProcessService,
    /// Which.
    pub name: ProcessName,
    /// What is wanted of it; `None` if nobody has said anything yet.
    pub desired: Option<DesiredState>,
    /// How often that was changed.
    pub asked: u64,
    /// How it stands.
    pub report: ProcessReport,
}

impl ProcessService {
    /// What people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.record.as_ref().map_or(self.id.as_str(), |record| &record.report.name)
    }
}

impl Process {
    /// Whether it runs and is to.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.report.status == ProcessStatus::Running && self.desired == Some(DesiredState::Running)
    }
}

impl Operations {
    /// The processes of a service: those on record, and those that can be started always.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_processes(
        &self,
        actor: &Actor,
        asked: AskedService<'_>,
    ) -> Result<Vec<Process>, Error> {
        self.authorise(actor, Action::ReadProcesses, "", Subject::Nothing).await?;
        let service = self.service(asked).await?;
        self.processes_of(&service).await
    }

    /// One process of a service.
    ///
    /// # Errors
    /// [`Error`], with what does the job of a name that is none here.
    pub async fn read_process(
        &self,
        actor: &Actor,
        asked: AskedService<'_>,
        name: &str,
    ) -> Result<Process, Error> {
        self.authorise(actor, Action::ReadProcesses, name, Subject::Nothing).await?;
        let name = name.parse().map_err(Error::ProcessNotFound)?;
        let service = self.service(asked).await?;
        self.process(&service, name).await
    }

    pub(super) async fn service(&self, asked: AskedService<'_>) -> Result<ProcessService, Error> {
        let services = self.store.services().await?;
        let now = now_ms();
        let of = |record: ServiceRecord| ProcessService {
            id: record.id.clone(),
            is_live: now.saturating_sub(record.seen_at_ms) < SILENT_MS,
            record: Some(record),
        };
        let Some(named) = asked.named else {
            let own = services.into_iter().find(|service| service.id == *asked.own);
            let unknown = ProcessService { id: asked.own.clone(), record: None, is_live: false };
            return Ok(own.map_or(unknown, of));
        };
        let is_named =
            |service: &&ServiceRecord| service.id.as_str() == named || service.report.name == named;
        let mut found: Vec<ServiceRecord> = services.iter().filter(is_named).cloned().collect();
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(of(only)),
            _ => Err(Error::ServiceNotFound {
                named: named.chars().take(64).collect(),
                known: services
                    .iter()
                    .map(|one| format!("{} ({}, {})", one.id, one.report.name, one.report.host))
                    .collect(),
            }),
        }
    }

    pub(super) async fn processes_of(&self, service: &ProcessService) -> Result<Vec<Process>, Error> {
        let environment = self.environment().await?;
        let rows = self.store.processes(&service.id).await?;
        let mut rows: BTreeMap<ProcessName, Option<ProcessRecord>> =
            rows.into_iter().map(|row| (row.name, Some(row))).collect();
        for name in ProcessName::always_listed() {
            rows.entry(name).or_insert(None);
        }
        Ok(rows.into_iter().map(|(name, row)| seen(service, name, row, environment)).collect())
    }

    pub(super) async fn process(
        &self,
        service: &ProcessService,
        name: ProcessName,
    ) -> Result<Process, Error> {
        let environment = self.environment().await?;
        let row = self.store.processes(&service.id).await?.into_iter().find(|row| row.name == name);
        Ok(seen(service, name, row, environment))
    }
}

/// A process as it is to be shown: what a service that is gone told last is not true any more.
fn seen(
    service: &ProcessService,
    name: ProcessName,
    row: Option<ProcessRecord>,
    environment: Environment,
) -> Process {
    let (desired, asked, report) = match row {
        Some(row) => (Some(row.desired), row.asked, row.report.unwrap_or_default()),
        None => (None, 0, ProcessReport::default()),
    };
    let mut process = Process { service: service.clone(), name, desired, asked, report };
    let report = &mut process.report;
    if !service.is_live && matches!(report.status, ProcessStatus::Running | ProcessStatus::Failed) {
        let since = service.record.as_ref().map(|record| format!(" since {}", iso_time(record.seen_at_ms)));
        report.status = ProcessStatus::Stopped;
        report.pid = None;
        report.message = Some(format!("its service has not told of itself{}", since.unwrap_or_default()));
    }
    if report.status != ProcessStatus::Running
        && desired == Some(DesiredState::Running)
        && let Some(reason) = skipped(name, environment)
    {
        report.message = Some(reason);
    }
    process
}

/// Why a process is not started in this environment, whoever asks for it.
pub(super) fn skipped(name: ProcessName, environment: Environment) -> Option<String> {
    (name.is_host_node() && environment == Environment::Sandbox).then(|| {
        format!(
            "{name} is not started: under `sandbox` the dispatcher launches each task in a sandbox of its own"
        )
    })
}
