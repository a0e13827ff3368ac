//! What the `runs` commands need of the store, and nothing else. This is where the command line meets it.

use std::path::PathBuf;

use cofferdam_core::{Event, Outcome, RunId, RunRequest, RunState, Seal};
use cofferdam_runner::Home;

use crate::exit::ExitCode;
use crate::failure::Failure;

/// A run as it stands now.
#[derive(Debug, Clone)]
pub(crate) struct RunRecord {
    /// What was asked.
    pub(crate) request: RunRequest,
    /// Where it stands.
    pub(crate) state: RunState,
    /// When it was accepted.
    pub(crate) created_at_ms: u64,
    /// When it got its final state.
    pub(crate) finished_at_ms: Option<u64>,
    /// How many attempts were started.
    pub(crate) attempts: u32,
    /// How the last attempt ended, once the run is final.
    pub(crate) outcome: Option<Outcome>,
    /// The seal of the last attempt, if one was measured.
    pub(crate) seal: Option<Seal>,
}

/// The record of all runs.
#[derive(Debug)]
pub(crate) struct Records {
    _home: Home,
}

impl Records {
    /// Opens the record in the state folder.
    pub(crate) async fn open(home: &Home) -> Result<Self, Failure> {
        Ok(Self { _home: home.clone() })
    }

    /// The runs, the newest first.
    pub(crate) async fn list_runs(&self) -> Result<Vec<RunRecord>, Failure> {
        Err(not_wired())
    }

    /// The ids of all runs.
    pub(crate) async fn run_ids(&self) -> Result<Vec<RunId>, Failure> {
        Ok(self.list_runs().await?.into_iter().map(|record| record.request.id).collect())
    }

    /// One run with all its attempts.
    pub(crate) async fn run(&self, _id: &RunId) -> Result<RunRecord, Failure> {
        Err(not_wired())
    }

    /// Its events after this number, in order; as many as the store gives at once, empty when there are no
    /// more.
    pub(crate) async fn events_after(&self, _id: &RunId, _after: u64) -> Result<Vec<Event>, Failure> {
        Err(not_wired())
    }

    /// The patch that it left, if one was collected.
    pub(crate) async fn diff(&self, _id: &RunId) -> Result<Option<PathBuf>, Failure> {
        Err(not_wired())
    }

    /// Asks for it to end. Returns the state after that.
    pub(crate) async fn request_cancel(&self, _id: &RunId) -> Result<RunState, Failure> {
        Err(not_wired())
    }

    /// Removes an ended run: its record and its artifacts.
    pub(crate) async fn remove_run(&self, _id: &RunId) -> Result<(), Failure> {
        Err(not_wired())
    }
}

fn not_wired() -> Failure {
    Failure::new(ExitCode::Internal, "the record of runs is not wired yet")
}
