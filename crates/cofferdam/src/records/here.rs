//! The record of this machine.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cofferdam_core::{AllowRule, Event, MessageKind, RunId, RunState, Settings, with_causes};
use cofferdam_runner::artifacts::{self, DIFF};
use cofferdam_runner::{Home, Node, dead_letters};
use cofferdam_store::{CancelAnswer, Error, KeptLetter, MessageId, RunFilter, RunRecord};

use crate::caller::{Caller, now_ms};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::node::{self, BrokerSetup};
use crate::secrets::CallerSecrets;
use crate::settings;

/// How many events are read at once.
const PAGE: u32 = 500;

/// The record of this machine.
pub(crate) struct Here {
    node: Node,
}

impl Here {
    /// Opens the record in the state folder. Runs whose process has died are brought to their true end
    /// first, so that nothing that is shown is a ghost.
    pub(crate) async fn open(home: &Home, caller: &Caller) -> Result<Self, Failure> {
        Ok(Self { node: node::register(home, caller, for_recovery(home, caller)).await? })
    }

    /// The runs, the newest first.
    pub(crate) async fn list_runs(&self) -> Result<Vec<RunRecord>, Failure> {
        let filter = RunFilter::newest(u32::MAX);
        self.node.store().list_runs(&filter).await.map_err(failure)
    }

    /// The ids of all runs.
    pub(crate) async fn run_ids(&self) -> Result<Vec<RunId>, Failure> {
        Ok(self.list_runs().await?.into_iter().map(|record| record.request.id).collect())
    }

    /// One run.
    pub(crate) async fn run(&self, id: &RunId) -> Result<RunRecord, Failure> {
        self.node.store().run(id).await.map_err(failure)
    }

    /// Its events after this number, in order; as many as the store gives at once, empty when there are no
    /// more.
    pub(crate) async fn events_after(&self, id: &RunId, after: u64) -> Result<Vec<Event>, Failure> {
        self.node.store().events_after(id, after, PAGE).await.map_err(failure)
    }

    /// The patch that it left, if one was collected.
    pub(crate) async fn diff(&self, id: &RunId) -> Result<Option<PathBuf>, Failure> {
        let artifacts = self.node.store().artifacts(id).await.map_err(failure)?;
        let Some(diff) = artifacts.iter().rfind(|artifact| artifact.name == DIFF) else { return Ok(None) };
        let fetched = artifacts::fetch(self.node.artifacts(), self.node.home(), diff).await;
        fetched.map(Some).map_err(|error| match error.is_not_found() {
            true => {
                Failure::new(ExitCode::Failed, format!("the diff of {id} is gone: {}", with_causes(&error)))
                    .hint("if the record was restored from a backup, copy the folder `runs` as well")
            }
            false => Failure::new(ExitCode::Internal, with_causes(&error)),
        })
    }

    /// Asks for it to end. Returns the state after that.
    pub(crate) async fn request_cancel(&self, id: &RunId) -> Result<RunState, Failure> {
        let answer = self.node.store().request_cancel(id, now_ms()).await.map_err(failure)?;
        // Its process polls as well, should this not reach it.
        self.node.store().wake();
        Ok(match answer {
            CancelAnswer::Cancelled => RunState::Cancelled,
            CancelAnswer::Requested => RunState::Running,
            CancelAnswer::AlreadyFinal(state) => state,
        })
    }

    /// Adds to what the broker lets a run reach. False if it could already.
    pub(crate) async fn allow(&self, id: &RunId, rule: &AllowRule) -> Result<bool, Failure> {
        let added = self.node.store().allow(id, rule, now_ms()).await.map_err(failure)?;
        // Its broker polls as well, should this not reach it.
        self.node.store().wake();
        Ok(added)
    }

    /// How many events a run has.
    pub(crate) async fn event_count(&self, id: &RunId) -> Result<u64, Failure> {
        self.node.store().event_count(id).await.map_err(failure)
    }

    /// Leaves a message for a run; `None` if the run has ended and takes none.
    pub(crate) async fn send(
        &self,
        id: &RunId,
        kind: MessageKind,
        content: &str,
    ) -> Result<Option<MessageId>, Failure> {
        let sent = match self.node.store().add_message(id, kind, content, now_ms()).await {
            Ok(sent) => sent,
            Err(Error::RunEnded { .. }) => return Ok(None),
            Err(error) => return Err(failure(error)),
        };
        self.node.store().wake();
        Ok(Some(sent))
    }

    /// The runs that failed for good, the newest first.
    pub(crate) async fn letters(&self) -> Result<Vec<KeptLetter>, Failure> {
        self.node.store().letters().await.map_err(failure)
    }

    /// Forgets a dead letter, and not its run.
    pub(crate) async fn remove_letter(&self, id: &RunId) -> Result<(), Failure> {
        let removed = dead_letters::remove(&self.node, id).await;
        removed.map(|_| ()).map_err(|error| Failure::internal("the dead letter is still there", &error))
    }

    /// What is in the folder of dead letters and is none on record.
    pub(crate) fn foreign_letters(&self, letters: &[RunId]) -> Result<Vec<PathBuf>, Failure> {
        dead_letters::foreign(self.node.home(), letters)
            .map_err(|error| Failure::internal("the folder of dead letters cannot be read", &error))
    }

    /// Removes an ended run: its record, then its artifacts, and with them those of any run whose removal
    /// was cut short in between.
    pub(crate) async fn remove_run(&self, id: &RunId) -> Result<(), Failure> {
        let failed = |error| Failure::internal("the run's artifacts could not be removed", &error);
        dead_letters::remove_file(self.node.home(), id)
            .map_err(|error| Failure::internal("the run's dead letter could not be removed", &error))?;
        let artifacts = self.node.store().artifacts(id).await.map_err(failure)?;
        self.node.store().remove_run(id).await.map_err(failure)?;
        for artifact in artifacts {
            let removed = artifacts::remove(self.node.artifacts(), self.node.home(), &artifact.place).await;
            removed.map_err(|error| Failure::internal("the run's artifacts could not be removed", &error))?;
        }
        // Folders are listed before records: one that is made in between belongs to a run that is seen.
        let folders = std::fs::read_dir(self.node.home().runs()).map_err(failed)?;
        let folders: Vec<PathBuf> = folders.flatten().map(|entry| entry.path()).collect();
        let kept: BTreeSet<RunId> = self.run_ids().await?.into_iter().collect();
        for folder in folders {
            let run = folder.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
            if run.is_some_and(|run: RunId| !kept.contains(&run)) {
                cofferdam_sandbox::remove_tree(&folder).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// What bringing a dead process's run to its end may need: its changes may have to be pushed. What cannot be read is left
/// out, since nothing else that these commands do depends on it.
fn for_recovery(home: &Home, caller: &Caller) -> BrokerSetup {
    let egress = settings::read_in(home.root()).unwrap_or_default().egress;
    BrokerSetup {
        secrets: CallerSecrets::of(caller).unwrap_or_default(),
        settings: Settings { egress, ..Settings::default() },
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::NotFound { .. } | Error::NotFinal { .. } => Failure::new(ExitCode::Usage, error.to_string()),
        _ => Failure::new(ExitCode::Internal, with_causes(&error)),
    }
}
