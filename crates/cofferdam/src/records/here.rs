//! The record of this machine.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_api::EventResponse;
use cofferdam_core::{Actor, AllowRule, MessageKind, RunId, RunState, Settings, with_causes};
use cofferdam_operations::{Error, Judged, NodeTrial, Operations};
use cofferdam_runner::artifacts::{self, DIFF};
use cofferdam_runner::{Home, Node, dead_letters};
use cofferdam_store::{KeptLetter, MessageId, RunRecord};

use super::{ABOUT_FULL, ABOUT_NETWORK, Patch, RunRecords, about_ended, about_live, wrong_state};
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::node::{self, BrokerSetup};
use crate::secrets::CallerSecrets;
use crate::settings;

/// Whoever sits at this machine.
const ACTOR: Actor = Actor::LocalUser;

/// The record of this machine.
pub(crate) struct Here {
    node: Node,
    caller: Caller,
}

impl Here {
    /// Opens the record in the state folder. Runs whose process has died are brought to their true end
    /// first, so that nothing that is shown is a ghost.
    pub(crate) async fn open(home: &Home, caller: &Caller) -> Result<Self, Failure> {
        let node = node::register(home, caller, for_recovery(home, caller)).await?;
        Ok(Self { node, caller: caller.clone() })
    }

    fn operations(&self) -> Operations {
        self.node.operations()
    }

    /// The runs that failed for good, the newest first.
    pub(crate) async fn letters(&self) -> Result<Vec<KeptLetter>, Failure> {
        self.operations().list_all_dead_letters(&ACTOR).await.map_err(failure)
    }

    /// Judges whether a run that failed may be done again.
    pub(crate) async fn judge_replay(
        &self,
        id: &RunId,
        max_attempts: Option<u32>,
    ) -> Result<Judged, Failure> {
        self.operations().judge_retry(&ACTOR, id, max_attempts).await.map_err(failure)
    }

    /// Forgets a dead letter, and not its run.
    pub(crate) async fn remove_letter(&self, id: &RunId) -> Result<(), Failure> {
        let removed = dead_letters::remove(&self.node, &ACTOR, id).await;
        removed.map(|_| ()).map_err(|error| Failure::internal("the dead letter is still there", &error))
    }

    /// What is in the folder of dead letters and is none on record.
    pub(crate) fn foreign_letters(&self, letters: &[RunId]) -> Result<Vec<PathBuf>, Failure> {
        dead_letters::foreign(self.node.home(), letters)
            .map_err(|error| Failure::internal("the folder of dead letters cannot be read", &error))
    }
}

#[async_trait(?Send)]
impl RunRecords for Here {
    async fn list_runs(&self) -> Result<Vec<RunRecord>, Failure> {
        self.operations().list_all_runs(&ACTOR).await.map_err(failure)
    }

    async fn run(&self, id: &RunId) -> Result<RunRecord, Failure> {
        self.operations().read_run(&ACTOR, id).await.map_err(failure)
    }

    async fn events_after(&self, id: &RunId, after: u64) -> Result<Vec<EventResponse>, Failure> {
        let page = self.operations().read_events(&ACTOR, id, after, None).await.map_err(failure)?;
        Ok(page.events.into_iter().map(EventResponse::from).collect())
    }

    async fn diff(&self, id: &RunId) -> Result<Option<Patch>, Failure> {
        let artifacts = self.operations().read_artifacts(&ACTOR, id).await.map_err(failure)?;
        let Some(diff) = artifacts.iter().rfind(|artifact| artifact.name == DIFF) else { return Ok(None) };
        let fetched = artifacts::fetch(self.node.artifacts(), self.node.home(), diff).await;
        fetched.map(|path| Some(Patch::Kept(path))).map_err(|error| match error.is_not_found() {
            true => {
                Failure::new(ExitCode::Failed, format!("the diff of {id} is gone: {}", with_causes(&error)))
                    .hint("if the record was restored from a backup, copy the folder `runs` as well")
            }
            false => Failure::new(ExitCode::Internal, with_causes(&error)),
        })
    }

    async fn request_cancel(&self, id: &RunId) -> Result<RunState, Failure> {
        self.operations().cancel_run(&ACTOR, id).await.map(|cancelled| cancelled.state).map_err(failure)
    }

    async fn allow(&self, id: &RunId, names: &[String]) -> Result<Vec<AllowRule>, Failure> {
        // Names of sets are those that a run started here would know.
        let loaded = settings::load(&self.caller, &settings::local_folder(&self.caller))?;
        loaded.warn();
        let operations = self.operations().with_settings(Arc::new(loaded.effective));
        operations.allow_host(&ACTOR, id, names).await.map_err(failure)
    }

    async fn send(&self, id: &RunId, kind: MessageKind, content: &str) -> Result<Option<MessageId>, Failure> {
        match self.operations().send_message(&ACTOR, id, kind, content).await {
            Ok(sent) => Ok(Some(sent.id)),
            Err(Error::RunEnded(_)) => Ok(None),
            Err(error) => Err(failure(error)),
        }
    }

    /// Removes an ended run: its record, then its artifacts, and with them those of any run whose removal
    /// was cut short in between.
    async fn remove_run(&self, id: &RunId) -> Result<(), Failure> {
        let failed = |error| Failure::internal("the run's artifacts could not be removed", &error);
        dead_letters::remove_file(self.node.home(), id)
            .map_err(|error| Failure::internal("the run's dead letter could not be removed", &error))?;
        let left = self.operations().remove_run(&ACTOR, id).await.map_err(failure)?;
        for artifact in left {
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
    let Settings { egress, git, .. } = settings::read_in(home.root()).unwrap_or_default();
    let settings = Settings { egress, git, ..Settings::default() };
    let secrets = CallerSecrets::of(caller).unwrap_or_default();
    BrokerSetup::new(caller, secrets, settings, Some(home.root())).unwrap_or_default()
}

/// What an operation that was not done means at the command line.
pub(crate) fn failure(error: Error) -> Failure {
    let text = error.to_string();
    match error {
        Error::RunNotFound(_)
        | Error::DeadLetterNotFound(_)
        | Error::SealNotFound(_)
        | Error::ProjectNotFound
        | Error::ProcessNotFound(_)
        | Error::ServiceNotFound { .. }
        | Error::SpecNotFound(_)
        | Error::ProjectExists(_) => Failure::new(ExitCode::Usage, text),
        Error::KeyNotFound(_) => {
            Failure::new(ExitCode::Usage, text).hint("type `cofferdam keys list` to see the ids")
        }
        Error::Invalid(error) => Failure::new(ExitCode::Usage, text).hint(error.hint),
        Error::RunNotEnded { run, .. } => wrong_state(text, about_live(&run)),
        Error::RunEnded(run) => wrong_state(text, about_ended(&run)),
        Error::RunNotSealed { .. } => wrong_state(text, ABOUT_NETWORK),
        Error::TooManyMessages { .. } => Failure::new(ExitCode::Refused, text).hint(ABOUT_FULL),
        Error::ModeUnusable { trials, .. } => mode_unusable(text, &trials),
        Error::NodeUnavailable(_) => Failure::new(ExitCode::Refused, text)
            .hint("start one: `cofferdam serve`, or `cofferdam work` beside it"),
        Error::ProcessRefused { .. }
        | Error::SpecBusy { .. }
        | Error::SpecArchived(_)
        | Error::SpecAwaitsApproval { .. }
        | Error::SpecNotWaiting(_)
        | Error::SpecCompleted(_)
        | Error::SpecChanged(_)
        | Error::RunOfSpec { .. } => Failure::new(ExitCode::Refused, text),
        Error::Refused(refusal) => Failure::new(ExitCode::Refused, refusal.reason()).hint(refusal.ask()),
        Error::Store(_) => Failure::new(ExitCode::Internal, with_causes(&error)),
    }
}

/// What the nodes found, as far as a line holds it.
fn mode_unusable(text: String, trials: &[NodeTrial]) -> Failure {
    let found = trials.iter().map(|trial| {
        let missing = trial.trial.iter().flat_map(|trial| &trial.findings);
        let missing = missing.filter(|finding| finding["status"] == "missing");
        let details: Vec<&str> = missing.filter_map(|finding| finding["detail"].as_str()).collect();
        let details = if details.is_empty() { "it did not answer".to_owned() } else { details.join("; ") };
        format!("node {}: {details}", trial.node)
    });
    let found: Vec<String> = found.collect();
    let why = if found.is_empty() { "no node is running".to_owned() } else { found.join("; ") };
    Failure::new(ExitCode::Refused, format!("{text}: {why}"))
        .hint("mend what is missing (`cofferdam sandbox doctor` tells more), or add --force")
}
