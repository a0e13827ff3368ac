//! Starting a process.

use cofferdam_core::{Action, Actor, DesiredState, ProcessName, ProcessStatus, Refusal, Subject};
use serde_json::json;

use super::read::skipped;
use super::{AskedService, Process};
use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

/// A process that was asked to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// How it stands now.
    pub process: Process,
    /// What came of it.
    pub starting: Starting,
}

/// What came of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Starting {
    /// It was started.
    Now,
    /// It ran already.
    Before,
    /// It is not started in this environment, and this is why.
    Skipped(String),
}

impl Operations {
    /// Wants a process to run, now and whenever its service is started again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn start_process(
        &self,
        actor: &Actor,
        asked: AskedService<'_>,
        name: &str,
    ) -> Result<Started, Error> {
        self.authorise(actor, Action::StartProcess, name, Subject::Nothing).await?;
        let name: ProcessName = name.parse().map_err(Error::ProcessNotFound)?;
        let service = self.service(asked).await?;
        if let Some(reason) = skipped(name, self.environment().await?) {
            let process = self.process(&service, name).await?;
            return Ok(Started { process, starting: Starting::Skipped(reason) });
        }
        // It could be anybody on this machine, and what such a node runs has no walls.
        if name.is_host_node() && *actor == Actor::Loopback {
            let refusal = Err(Refusal::NotWithoutKey { action: Action::StartProcess });
            self.unless_refused(actor, Action::StartProcess, &name.to_string(), refusal).await?;
        }
        if service.record.as_ref().is_some_and(|record| !record.report.works) {
            let why = format!("the service `{}` was started with --no-work", service.name());
            return Err(Error::ProcessRefused { name, why });
        }
        let before = self.process(&service, name).await?;
        if before.is_running() {
            return Ok(Started { process: before, starting: Starting::Before });
        }
        // Every node needs the way out.
        let wanted = [(name, DesiredState::Running), (ProcessName::Broker, DesiredState::Running)];
        let about = json!({ "service": service.id });
        let mandate = mandate(actor, Action::StartProcess, &name.to_string(), about);
        self.store.set_desired(&mandate, &service.id, &wanted).await?;
        self.store.wake();
        let has_begun = |process: &Process| {
            matches!(process.report.status, ProcessStatus::Running | ProcessStatus::Failed)
        };
        let process = self.settled(&service, name, has_begun).await?;
        Ok(Started { process, starting: Starting::Now })
    }
}
