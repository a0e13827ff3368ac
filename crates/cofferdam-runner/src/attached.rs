//! `cofferdam run`: one run, executed by the process that accepted it, while its terminal watches.

use std::path::PathBuf;

use cofferdam_core::{Event, Mode, Outcome, RunId, RunRequest, RunState, Seal};
use tokio::sync::watch;

/// How far an attempt is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The workspace is made; the text says what is going on (such as a fetch's progress).
    Preparing(String),
    /// The sandbox is made and its seal measured.
    Sealing,
    /// The agent works.
    Running,
    /// What it left is collected.
    Collecting,
}

/// What a watcher is told. An event is told only after it has been stored for good.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The attempt is this far.
    Stage(Stage),
    /// A new event.
    Event(Event),
}

/// What the person at the terminal has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cancel {
    /// Nothing.
    No,
    /// End the agent, with its grace.
    Gracefully,
    /// End it now.
    Now,
}

/// A run that has its final state, with the evidence.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// Which.
    pub run: RunId,
    /// Its final state.
    pub state: RunState,
    /// How its last attempt ended.
    pub outcome: Outcome,
    /// How many attempts there were.
    pub attempts: u32,
    /// The mode that was really used.
    pub mode: Mode,
    /// The seal of the last attempt, if one was measured.
    pub seal: Option<Seal>,
    /// The patch, if the workspace was collected; an empty file if nothing changed.
    pub diff: Option<PathBuf>,
    /// Everything the agent printed.
    pub transcript: Option<PathBuf>,
    /// What a person should know about the diff: files left out, a base that moved.
    pub warnings: Vec<String>,
    /// Wall clock from acceptance to the final state.
    pub duration_ms: u64,
}

/// Why there is no report. The run's own failures are outcomes and not errors.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store refused or failed.
    #[error("the run's record could not be kept")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Accepts a run, executes it in this process and returns its final state.
///
/// # Errors
/// [`RunError`] if the record cannot be kept.
pub async fn run_attached(
    _request: RunRequest,
    _watch: &mut (dyn FnMut(Progress) + Send),
    _cancel: watch::Receiver<Cancel>,
) -> Result<RunReport, RunError> {
    Err(RunError::Store("not built yet".into()))
}
