//! What the `runs` commands need of the record, and nothing else: of this machine, or of a service.

mod here;
mod keys;
mod specs;
mod there;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_api::{Client, EventResponse};
use cofferdam_core::{AllowRule, MessageKind, Receipt, RunId, RunState};
use cofferdam_store::MessageId;
pub(crate) use cofferdam_store::{KeptLetter, RunRecord};
use tempfile::TempPath;

pub(crate) use self::here::{Here, failure as operation_failure};
pub(crate) use self::keys::KeyRecords;
pub(crate) use self::specs::{SpecRecords, SpecsHere};
pub(crate) use self::there::{There, failure as client_failure};
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;

/// How often a receipt is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The record of all runs: of this machine, or of a service.
pub(crate) type Records = dyn RunRecords;

/// What a record of runs answers.
#[async_trait(?Send)]
pub(crate) trait RunRecords {
    /// The runs, the newest first.
    async fn list_runs(&self) -> Result<Vec<RunRecord>, Failure>;

    /// One run.
    async fn run(&self, id: &RunId) -> Result<RunRecord, Failure>;

    /// Its events after this number, in order; as many as there are at once, empty when there are no more.
    async fn events_after(&self, id: &RunId, after: u64) -> Result<Vec<EventResponse>, Failure>;

    /// The patch that it left, if one was collected.
    async fn diff(&self, id: &RunId) -> Result<Option<Patch>, Failure>;

    /// Asks for it to end. Returns the state after that.
    async fn request_cancel(&self, id: &RunId) -> Result<RunState, Failure>;

    /// Leaves a message for a run; `None` if the run has ended and takes none.
    async fn send(&self, id: &RunId, kind: MessageKind, content: &str) -> Result<Option<MessageId>, Failure>;

    /// Adds rules, or sets of the settings, to what the broker lets a run reach. Returns the rules that are new to it.
    async fn allow(&self, id: &RunId, names: &[String]) -> Result<Vec<AllowRule>, Failure>;

    /// Removes an ended run with what it left.
    async fn remove_run(&self, id: &RunId) -> Result<(), Failure>;

    /// The ids of all runs.
    async fn run_ids(&self) -> Result<Vec<RunId>, Failure> {
        Ok(self.list_runs().await?.into_iter().map(|record| record.request.id).collect())
    }

    /// How many events a run has.
    async fn event_count(&self, id: &RunId) -> Result<u64, Failure> {
        Ok(self.run(id).await?.last_seq)
    }

    /// Waits for the receipt of a message that was sent after this event.
    async fn receipt(&self, id: &RunId, message: MessageId, mut after: u64) -> Result<Receipt, Failure> {
        let message = serde_json::json!(message);
        loop {
            let events = self.events_after(id, after).await?;
            after = events.last().map_or(after, |event| event.seq);
            let mut ours = events.iter().filter(|event| event.data.get("id") == Some(&message));
            let receipt = ours.find_map(|event| Receipt::of_event(event.known_type()?, &event.data));
            match receipt {
                Some(receipt) => return Ok(receipt),
                None => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }
}

impl Records {
    /// Opens the record of the service that was named, or of this machine.
    pub(crate) async fn open(service: Option<Client>, caller: &Caller) -> Result<Box<Self>, Failure> {
        match service {
            Some(client) => Ok(Box::new(There::new(client))),
            None => Ok(Box::new(Here::open(&caller.open_state()?, caller).await?)),
        }
    }
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

/// A run that is in another state than an operation is for.
fn wrong_state(message: impl Into<String>, hint: impl Into<String>) -> Failure {
    Failure::new(ExitCode::Refused, message).hint(hint)
}

/// What to type about a run that has ended.
fn about_ended(id: &RunId) -> String {
    format!("type `cofferdam runs show {id}` to see how")
}

/// What to type about a run that has not.
fn about_live(id: &RunId) -> String {
    format!("type `cofferdam runs cancel {id}` first")
}

/// What to type about a run that has another network.
const ABOUT_NETWORK: &str = "start it with `--network sealed`";
const ABOUT_FULL: &str = "wait until the agent has taken some of them, or cancel the run";
