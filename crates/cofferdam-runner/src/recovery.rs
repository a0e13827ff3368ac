//! After a crash: tells the truth about runs whose process died, goes on with what is alive, and removes
//! what is nobody's.

use std::collections::BTreeSet;

use cofferdam_core::{ErrorClass, FailureClass, Outcome, RunId, SandboxId};
use cofferdam_store::{Claimed, Left, LiveRun};
use tokio::sync::watch;

use crate::attached::{Cancel, Progress};
use crate::execute::{Attempt, Entry, ExecuteError, LEASE_MS, Retries, execute, has_created};
use crate::node::{Node, forget_dead, is_alive, now_ms};
use crate::{dead_letters, redaction, workspace};

/// What a sweep found and did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Runs that were brought to their true end.
    pub finished: Vec<RunId>,
    /// Sandboxes that were nobody's and are gone.
    pub removed: Vec<SandboxId>,
}

/// Ends the attached runs whose process died, and removes every sandbox and workspace that belongs to no
/// living run. Detached runs of dead nodes are returned by [`orphans`], for a dispatcher to go on with.
///
/// # Errors
/// [`ExecuteError`] if the record cannot be read or kept.
pub async fn sweep(node: &Node) -> Result<Swept, ExecuteError> {
    let finished = end_dead(node).await?;
    dead_letters::write_missing(node).await?;
    let removed = remove_orphans(node).await?;
    let _ = forget_dead(&node.home);
    Ok(Swept { finished, removed })
}

/// Ends the attached runs whose process died.
pub(crate) async fn end_dead(node: &Node) -> Result<Vec<RunId>, ExecuteError> {
    let mut finished = Vec::new();
    for reserved in node.store.reserved_runs().await? {
        if !is_alive(&node.home, &reserved.claimable_by) {
            finished.extend(end_reserved(node, &reserved.run).await?);
        }
    }
    for live in node.store.live_runs().await? {
        if live.claimable_by.is_some() && !is_alive(&node.home, &live.node) {
            finished.extend(end_attached(node, &live).await?);
        }
    }
    Ok(finished)
}

/// A run that was accepted and never claimed: the process that alone could claim it is dead.
async fn end_reserved(node: &Node, run: &RunId) -> Result<Option<RunId>, ExecuteError> {
    let Some(claimed) = node.store.claim_for_recovery(run, &node.owner(), now_ms(), LEASE_MS).await? else {
        return Ok(None);
    };
    lose(node, &claimed, "the process that the run belonged to ended before the run started").await?;
    Ok(Some(run.clone()))
}

/// A run whose process died on the way. Its sandbox died with it; what it left is collected as ever.
async fn end_attached(node: &Node, live: &LiveRun) -> Result<Option<RunId>, ExecuteError> {
    let run = &live.attempt.run;
    let taken = node.store.adopt_for_recovery(run, live.token, &node.owner(), now_ms(), LEASE_MS).await?;
    // Somebody else was faster.
    let Some(claimed) = taken else { return Ok(None) };
    // Going on would start the agent, without its terminal. What is left of a sandbox goes with the sweep.
    if !has_created(node, &claimed).await? {
        lose(node, &claimed, "the process that the run belonged to ended").await?;
        return Ok(Some(run.clone()));
    }
    resume(node, claimed, Retries::Never).await?;
    Ok(Some(run.clone()))
}

/// Records the end of an attempt that never came to a sandbox, and of its run.
async fn lose(node: &Node, claimed: &Claimed, message: &str) -> Result<(), ExecuteError> {
    let outcome = Outcome::failed(FailureClass::Lost, message);
    let redactor = redaction::redactor_of(node, claimed);
    let values = redaction::values_left(node, claimed);
    let (class, now) = (ErrorClass::from(FailureClass::Lost), now_ms());
    let letter = dead_letters::letter_of(claimed, &outcome, class, &redactor, values, now);
    let left = Left { letter: Some(letter.clone()), ..Left::default() };
    node.store.finish(&claimed.lease, &outcome, &left, now).await?;
    dead_letters::write(node, &claimed.attempt.run, &letter);
    Ok(())
}

/// Goes on with an attempt that a dead process has left.
pub(crate) async fn resume(node: &Node, claimed: Claimed, retries: Retries) -> Result<(), ExecuteError> {
    let (_open, cancel) = watch::channel(Cancel::No);
    let mut nobody = |_: Progress| {};
    execute(Attempt {
        node,
        redactor: redaction::redactor_of(node, &claimed),
        claimed,
        entry: Entry::Adopted,
        retries,
        watch: &mut nobody,
        cancel,
        held: Vec::new(),
    })
    .await?;
    Ok(())
}

/// Detached runs whose node is dead or is a former self of this one.
///
/// # Errors
/// [`ExecuteError`] if the record cannot be read.
pub(crate) async fn orphans(node: &Node) -> Result<Vec<LiveRun>, ExecuteError> {
    let mut live = node.store.live_runs().await?;
    live.retain(|run| {
        run.claimable_by.is_none() && (run.node == node.id || !is_alive(&node.home, &run.node))
    });
    Ok(live)
}

async fn remove_orphans(node: &Node) -> Result<Vec<SandboxId>, ExecuteError> {
    // Sandboxes are listed before runs: one that is made in between belongs to a run that is seen.
    let mut found = Vec::new();
    for backend in node.backends.values() {
        match backend.list().await {
            // A node that lives removes its own, and may be doing so right now.
            Ok(listed) => found.extend(
                listed
                    .into_iter()
                    .filter(|one| {
                        one.node
                            .as_ref()
                            .is_none_or(|owner| *owner == node.id || !is_alive(&node.home, owner))
                    })
                    .map(|one| (Some(backend), one.id)),
            ),
            Err(error) => tracing::warn!(%error, "sandboxes could not be listed"),
        }
    }
    let workspaces = workspace::list(&node.home).unwrap_or_default();
    found.extend(workspaces.into_iter().map(|id| (None, id)));
    let running: BTreeSet<SandboxId> =
        node.store.live_runs().await?.iter().map(|live| SandboxId::of(&live.attempt)).collect();
    let mut removed = Vec::new();
    for (backend, id) in found {
        if running.contains(&id) {
            continue;
        }
        if let Some(backend) = backend
            && let Ok(sandbox) = backend.open(&id).await
        {
            match sandbox.destroy().await {
                Ok(()) => removed.push(id.clone()),
                Err(error) => tracing::warn!(sandbox.id = %id, %error, "a sandbox could not be removed"),
            }
        }
        if let Err(error) = workspace::remove(&node.home, &id) {
            tracing::warn!(sandbox.id = %id, %error, "a workspace could not be removed");
        }
    }
    Ok(removed)
}
