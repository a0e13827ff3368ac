//! The processes of a service that is called.

use async_trait::async_trait;
use cofferdam_api::{
    Client, ProcessLogQuery, ProcessQuery, ProcessResponse, StartProcessResponse, StopAllResponse,
    StopProcessRequest, StopProcessResponse,
};

use super::Processes;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::client_failure;
use crate::{sanitize, terminal};

pub(super) struct There {
    client: Client,
    query: ProcessQuery,
}

impl There {
    pub(super) fn new(client: Client, service: Option<String>) -> Self {
        Self { client, query: ProcessQuery { service } }
    }

    /// Prints a log for as long as it is there.
    pub(super) async fn follow(&self, name: &str, lines: u32) -> Result<ExitCode, Failure> {
        let query = ProcessLogQuery { service: self.query.service.clone(), lines: Some(lines) };
        let failure = |error| client_failure(&error);
        let mut log = self.client.follow_process_log(name, &query).await.map_err(failure)?;
        loop {
            let line = log.next().await.map_err(failure)?;
            terminal::write_stdout(format!("{}\n", sanitize::line(&line)).as_bytes())?;
        }
    }
}

#[async_trait(?Send)]
impl Processes for There {
    async fn list(&self) -> Result<Vec<ProcessResponse>, Failure> {
        let listed = self.client.processes(&self.query).await;
        listed.map(|listed| listed.processes).map_err(|error| client_failure(&error))
    }

    async fn start(&self, name: &str) -> Result<StartProcessResponse, Failure> {
        self.client.start_process(name, &self.query).await.map_err(|error| client_failure(&error))
    }

    async fn stop(&self, name: &str, cancel: bool) -> Result<StopProcessResponse, Failure> {
        let stop = StopProcessRequest { cancel };
        self.client.stop_process(name, &self.query, stop).await.map_err(|error| client_failure(&error))
    }

    async fn stop_all(&self, cancel: bool) -> Result<StopAllResponse, Failure> {
        let stop = StopProcessRequest { cancel };
        self.client.stop_all_processes(&self.query, stop).await.map_err(|error| client_failure(&error))
    }

    async fn log(&self, name: &str, lines: u32) -> Result<Vec<String>, Failure> {
        let query = ProcessLogQuery { service: self.query.service.clone(), lines: Some(lines) };
        let log = self.client.process_log(name, &query).await;
        log.map(|log| log.lines).map_err(|error| client_failure(&error))
    }
}
