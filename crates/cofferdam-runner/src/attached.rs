//! `cofferdam run`: one run, executed by the process that accepted it, while its terminal watches.

use std::path::PathBuf;
use std::time::Duration;

use cofferdam_core::{Actor, ErrorClass, Mode, Outcome, RunId, RunState, Seal};
use cofferdam_operations::Judged;
use tokio::sync::watch;

use crate::artifacts::KeptReply;
use crate::execute::{Attempt, Entry, ExecuteError, Retries, execute};
use crate::node::{Node, now_ms};
use crate::progress::{Cancel, Progress};
use crate::run_error::RunError;
use crate::{attempt_secrets, slot};

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
    /// The mode that was really used. A direct run has none: it says how its tools are sealed.
    pub mode: Mode,
    /// Whether it is a direct run.
    pub is_direct: bool,
    /// The seal of the last attempt, if one was measured.
    pub seal: Option<Seal>,
    /// The patch, if the workspace was collected; an empty file if nothing changed.
    pub diff: Option<PathBuf>,
    /// Everything the agent printed.
    pub transcript: Option<PathBuf>,
    /// The answer to a message, and the files that come with it.
    pub reply: Option<KeptReply>,
    /// What a person should know about the diff: files left out, a base that moved.
    pub warnings: Vec<String>,
    /// Changed files that somebody else changed meanwhile. Their part of the diff starts from what that
    /// somebody wrote and not from what the agent saw, so applying it would undo their work.
    pub base_moved: Vec<String>,
    /// Whether secrets were taken out of the diff: what is left of it is for reading alone.
    pub has_redacted: bool,
    /// Whose fault it was, if the run is kept as a dead letter.
    pub dead_letter: Option<ErrorClass>,
    /// Wall clock from acceptance to the final state.
    pub duration_ms: u64,
}

/// Accepts a run, executes it in this process and returns its final state.
///
/// # Errors
/// [`RunError`] if the record cannot be kept.
pub async fn run_attached(
    node: &Node,
    judged: Judged,
    watch: &mut (dyn FnMut(Progress) + Send),
    cancel: watch::Receiver<Cancel>,
) -> Result<RunReport, RunError> {
    let judged = judged.claimable_by(node.id.clone());
    let request = judged.request().clone();
    let accepted = node.operations().accept(judged, None).await?;
    let (run, actor) = (accepted.run, accepted.actor);
    loop {
        let Some(claimed) = slot::wait_for_turn(node, &request, &actor, watch, cancel.clone()).await? else {
            return report(node, &run).await;
        };
        let attempt = Attempt {
            node,
            redactor: attempt_secrets::redactor_of(node, &claimed),
            claimed,
            entry: Entry::Claimed,
            retries: Retries::AsAsked,
            watch: &mut *watch,
            cancel: cancel.clone(),
            held: Vec::new(),
        };
        let after = match execute(attempt).await {
            // An answer of the record may be lost when the thing is done.
            Err(ExecuteError::LeaseLost) if node.store.run(&run).await?.state.is_final() => {
                return report(node, &run).await;
            }
            executed => executed?,
        };
        if after.state.is_final()
            || !wait_for_retry(node, &run, &actor, after.not_before_ms, cancel.clone()).await?
        {
            return report(node, &run).await;
        }
    }
}

/// Waits until the run may be claimed again. False if it was cancelled meanwhile.
async fn wait_for_retry(
    node: &Node,
    run: &RunId,
    actor: &Actor,
    not_before_ms: u64,
    mut cancel: watch::Receiver<Cancel>,
) -> Result<bool, RunError> {
    loop {
        let left = not_before_ms.saturating_sub(now_ms());
        if node.store.run(run).await?.state.is_final() {
            return Ok(false);
        }
        if left == 0 {
            return Ok(true);
        }
        let pause = Duration::from_millis(left.min(500));
        // What was heard is a lock, which must not be held while the record is asked.
        let cancelled = async { cancel.wait_for(|asked| *asked != Cancel::No).await.map(drop) };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Ok(()) = cancelled => {
                node.operations().cancel_run(actor, run).await?;
                return Ok(false);
            }
        }
    }
}

/// The final state of a run, read back from the record.
///
/// # Errors
/// [`RunError`] if there is no such run, or it has not ended.
pub async fn report(node: &Node, run: &RunId) -> Result<RunReport, RunError> {
    let record = node.store.run(run).await?;
    let state = record.state;
    let outcome = record.outcome.ok_or(cofferdam_store::Error::NotFinal { run: run.clone(), state })?;
    let artifacts = node.store.artifacts(run).await?;
    let last = async |name: &str| {
        let found = artifacts.iter().rfind(|a| a.name == name && a.attempt == record.attempts);
        match found {
            Some(artifact) => crate::artifacts::fetch(&node.artifacts, &node.home, artifact).await.map(Some),
            None => Ok(None),
        }
    };
    let summary = last(crate::artifacts::SUMMARY).await?.and_then(|path| std::fs::read(path).ok());
    let summary = crate::artifacts::read_summary(&summary.unwrap_or_default());
    Ok(RunReport {
        run: run.clone(),
        state,
        outcome,
        attempts: record.attempts,
        mode: record.request.policy.mode,
        is_direct: record.request.work.direct().is_some(),
        seal: record.seal,
        diff: last(crate::artifacts::DIFF).await?,
        transcript: last(crate::artifacts::TRANSCRIPT).await?,
        reply: last(crate::artifacts::REPLY).await?.as_deref().and_then(crate::artifacts::read_reply),
        warnings: summary.warnings,
        base_moved: summary.base_moved,
        has_redacted: summary.has_redacted,
        dead_letter: node.store.letter(run).await?.map(|kept| kept.letter.error_class),
        duration_ms: record
            .finished_at_ms
            .unwrap_or(record.updated_at_ms)
            .saturating_sub(record.created_at_ms),
    })
}
