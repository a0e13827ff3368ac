//! The processes of a service of this machine, through the record.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_api::{ProcessResponse, StartProcessResponse, StopAllResponse, StopProcessResponse};
use cofferdam_core::{Actor, NodeId, NodeName, ProcessName};
use cofferdam_operations::{AskedService, Operations, now_ms};
use cofferdam_runner::Home;
use cofferdam_server::{process_response, start_response, stop_all_response, stop_response};

use super::Processes;
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::record_place::open_store;
use crate::records::operation_failure as failure;
use crate::service::{LogOf, last_lines, log_path};
use crate::settings;

/// Whoever sits at this machine.
const ACTOR: Actor = Actor::LocalUser;

pub(super) struct Here {
    operations: Operations,
    home: Home,
    name: NodeName,
    id: NodeId,
}

impl Here {
    pub(super) async fn open(name: NodeName, caller: &Caller) -> Result<Self, Failure> {
        let home = caller.open_state()?;
        let effective = Arc::new(settings::read_for_service(caller)?);
        let operations = Operations::new(open_store(&home, caller).await?, effective, Arc::new(|_| false));
        let id = home
            .node_id(&name, now_ms())
            .map_err(|error| Failure::internal("the node's id cannot be kept", &error))?;
        Ok(Self { operations, home, name, id })
    }

    fn own(&self) -> AskedService<'_> {
        AskedService { own: &self.id, named: None }
    }
}

#[async_trait(?Send)]
impl Processes for Here {
    async fn list(&self) -> Result<Vec<ProcessResponse>, Failure> {
        let listed = self.operations.list_processes(&ACTOR, self.own()).await.map_err(failure)?;
        Ok(listed.into_iter().map(process_response).collect())
    }

    async fn start(&self, name: &str) -> Result<StartProcessResponse, Failure> {
        let started = self.operations.start_process(&ACTOR, self.own(), name).await.map_err(failure)?;
        Ok(start_response(started))
    }

    async fn stop(&self, name: &str, cancel: bool) -> Result<StopProcessResponse, Failure> {
        let stopped =
            self.operations.stop_process(&ACTOR, self.own(), name, cancel).await.map_err(failure)?;
        Ok(stop_response(stopped))
    }

    async fn stop_all(&self, cancel: bool) -> Result<StopAllResponse, Failure> {
        let stopped =
            self.operations.stop_all_processes(&ACTOR, self.own(), cancel).await.map_err(failure)?;
        Ok(stop_all_response(&stopped, cancel))
    }

    async fn log(&self, name: &str, lines: u32) -> Result<Vec<String>, Failure> {
        let process: ProcessName = name.parse().map_err(|error: cofferdam_core::UnknownProcess| {
            Failure::new(ExitCode::Usage, error.to_string())
        })?;
        let text = last_lines(&log_path(&self.home, LogOf::Process(process), &self.name), lines as usize)
            .map_err(|error| Failure::internal("the log cannot be read", &error))?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}
