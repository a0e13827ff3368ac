//! What the `runs` commands need of the record, and nothing else: of this machine, or of a service.

mod here;
mod there;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_api::Client;
use cofferdam_core::{AllowRule, Event, EventType, MessageKind, RunId, RunState};
use cofferdam_store::MessageId;
pub(crate) use cofferdam_store::{KeptLetter, RunRecord};
use tempfile::TempPath;

pub(crate) use self::here::{Here, failure as operation_failure};
pub(crate) use self::there::{There, failure as client_failure};
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;

/// How often a receipt is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The record of all runs.
pub(crate) enum Records {
    /// Of this machine.
    Here(Box<Here>),
    /// Of a service.
    There(There),
}

/// A patch in a file, which may go with this.
pub(crate) enum Patch {
    /// As it is kept.
    Kept(PathBuf),
    /// As it was fetched.
    Fetched(TempPath),
}

impl Patch {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Fetched(path) => path,
        }
    }
}

impl Records {
    /// Opens the record of the service that was named, or of this machine.
    pub(crate) async fn open(service: Option<Client>, caller: &Caller) -> Result<Self, Failure> {
        match service {
            Some(client) => Ok(Self::There(There::new(client))),
            None => Ok(Self::Here(Box::new(Here::open(&caller.open_state()?, caller).await?))),
        }
    }

    /// The runs, the newest first.
    pub(crate) async fn list_runs(&self) -> Result<Vec<RunRecord>, Failure> {
        match self {
            Self::Here(record) => record.list_runs().await,
            Self::There(record) => record.list_runs().await,
        }
    }

    /// The ids of all runs.
    pub(crate) async fn run_ids(&self) -> Result<Vec<RunId>, Failure> {
        Ok(self.list_runs().await?.into_iter().map(|record| record.request.id).collect())
    }

    /// One run.
    pub(crate) async fn run(&self, id: &RunId) -> Result<RunRecord, Failure> {
        match self {
            Self::Here(record) => record.run(id).await,
            Self::There(record) => record.run(id).await,
        }
    }

    /// Its events after this number, in order; as many as there are at once, empty when there are no more.
    pub(crate) async fn events_after(&self, id: &RunId, after: u64) -> Result<Vec<Event>, Failure> {
        match self {
            Self::Here(record) => record.events_after(id, after).await,
            Self::There(record) => record.events_after(id, after).await,
        }
    }

    /// The patch that it left, if one was collected.
    pub(crate) async fn diff(&self, id: &RunId) -> Result<Option<Patch>, Failure> {
        match self {
            Self::Here(record) => Ok(record.diff(id).await?.map(Patch::Kept)),
            Self::There(record) => Ok(record.diff(id).await?.map(Patch::Fetched)),
        }
    }

    /// Asks for it to end. Returns the state after that.
    pub(crate) async fn request_cancel(&self, id: &RunId) -> Result<RunState, Failure> {
        match self {
            Self::Here(record) => record.request_cancel(id).await,
            Self::There(record) => record.request_cancel(id).await,
        }
    }

    /// How many events a run has.
    pub(crate) async fn event_count(&self, id: &RunId) -> Result<u64, Failure> {
        match self {
            Self::Here(record) => record.event_count(id).await,
            Self::There(record) => Ok(record.run(id).await?.last_seq),
        }
    }

    /// Leaves a message for a run; `None` if the run has ended and takes none.
    pub(crate) async fn send(
        &self,
        id: &RunId,
        kind: MessageKind,
        content: &str,
    ) -> Result<Option<MessageId>, Failure> {
        match self {
            Self::Here(record) => record.send(id, kind, content).await,
            Self::There(record) => record.send(id, kind, content).await,
        }
    }

    /// Waits for the receipt of a message that was sent after this event.
    pub(crate) async fn receipt(
        &self,
        id: &RunId,
        message: MessageId,
        mut after: u64,
    ) -> Result<Event, Failure> {
        loop {
            let events = self.events_after(id, after).await?;
            after = events.last().map_or(after, |event| event.seq);
            let receipt = events.into_iter().find(|event| {
                let is_receipt =
                    matches!(event.event_type, EventType::MessageDelivered | EventType::MessageRefused);
                is_receipt && event.data.get("id") == Some(&serde_json::json!(message))
            });
            match receipt {
                Some(receipt) => return Ok(receipt),
                None => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Adds to what the broker lets a run reach. False if it could already.
    pub(crate) async fn allow(&self, id: &RunId, rule: &AllowRule) -> Result<bool, Failure> {
        match self {
            Self::Here(record) => record.allow(id, rule).await,
            Self::There(_) => Err(only_here("allow")),
        }
    }

    /// Removes an ended run with what it left.
    pub(crate) async fn remove_run(&self, id: &RunId) -> Result<(), Failure> {
        match self {
            Self::Here(record) => record.remove_run(id).await,
            Self::There(_) => Err(only_here("rm")),
        }
    }
}

/// What the service does for nobody from afar.
fn only_here(command: &str) -> Failure {
    Failure::new(ExitCode::Usage, format!("`runs {command}` is done on the service's own machine"))
        .hint("leave --server out there, or unset COFFERDAM_SERVER")
}
