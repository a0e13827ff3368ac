//! After a crash: tells the truth about runs whose process died, goes on with what is alive, and removes
//! what is nobody's.

use std::collections::BTreeSet;

use cofferdam_core::{ErrorClass, FailureClass, NodeId, Outcome, PlaceId, RunId, SandboxId};
use cofferdam_store::{Claimed, Left, LiveRun, Store};

use crate::execute::{Entry, ExecuteError, Retries, execute_unwatched, has_created};
use crate::lease_times::{GRACE_MS, LEASE_MS};
use crate::node::{Node, now_ms};
use crate::node_lock::{forget_dead, is_alive};
use crate::{attempt_secrets, dead_letters, workspace};

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

/// Whether a process is known to be dead: it was of this state folder, and its lock is free. Of a process of another
/// folder only its lease tells.
fn is_dead(node: &Node, process: &NodeId, place: Option<&PlaceId>) -> bool {
    is_here(node, place) && !is_alive(&node.home, process)
}

/// An older program knew one folder only.
fn is_here(node: &Node, place: Option<&PlaceId>) -> bool {
    place.is_none_or(|place| *place == node.place)
}

/// Ends the attached runs of this state folder whose process died. Of other folders' runs those that wait for their
/// process end when that folder is used again, and those under way when a dispatcher finds their lease run out.
pub(crate) async fn end_dead(node: &Node) -> Result<Vec<RunId>, ExecuteError> {
    let mut finished = Vec::new();
    for reserved in node.store.reserved_runs().await? {
        if is_dead(node, &reserved.claimable_by, reserved.place.as_ref()) {
            finished.extend(end_reserved(node, &reserved.run).await?);
        }
    }
    for live in node.store.live_runs().await? {
        if live.claimable_by.is_some() && is_dead(node, &live.node, live.place.as_ref()) {
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
    let redactor = attempt_secrets::redactor_of(node, claimed);
    let values = attempt_secrets::values_left(node, claimed);
    let (class, now) = (ErrorClass::from(FailureClass::Lost), now_ms());
    let letter = dead_letters::letter_of(claimed, &outcome, class, &redactor, values, now);
    let left = Left { letter: Some(letter.clone()), ..Left::default() };
    node.store.finish(&claimed.lease, &outcome, &left, now).await?;
    dead_letters::write(node, &claimed.attempt.run, &letter);
    Ok(())
}

/// Goes on with an attempt that a dead process has left.
pub(crate) async fn resume(node: &Node, claimed: Claimed, retries: Retries) -> Result<(), ExecuteError> {
    execute_unwatched(node, claimed, Entry::Adopted, retries).await.map(drop)
}

/// A run that is under way and that nobody executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Orphan {
    /// Its sandbox is in this state folder, and can be opened again.
    Here(LiveRun),
    /// Its node was of another folder, and has not renewed its lease. Its sandbox cannot be reached from here.
    Elsewhere(LiveRun),
}

impl Orphan {
    /// The run as it is on record.
    pub(crate) fn live(&self) -> &LiveRun {
        match self {
            Self::Here(live) | Self::Elsewhere(live) => live,
        }
    }
}

/// Runs that nobody executes: detached ones of a former self of this node or of a dead one beside it, and any of other
/// folders whose lease ran out a while ago. The latter only if contact with the record is steady: after an outage of the
/// database their nodes may just be about to renew.
pub(crate) async fn orphans(
    node: &Node,
    store: &Store,
    now_ms: u64,
    is_steady: bool,
) -> Result<Vec<Orphan>, ExecuteError> {
    let live = store.live_runs().await?;
    Ok(live.into_iter().filter_map(|live| orphan(node, live, now_ms, is_steady)).collect())
}

fn orphan(node: &Node, live: LiveRun, now_ms: u64, is_steady: bool) -> Option<Orphan> {
    if !is_here(node, live.place.as_ref()) {
        let is_over = live.lease_expires_at_ms.saturating_add(GRACE_MS) <= now_ms;
        return (is_over && is_steady).then_some(Orphan::Elsewhere(live));
    }
    let is_free = live.node == node.id || !is_alive(&node.home, &live.node);
    (live.claimable_by.is_none() && is_free).then_some(Orphan::Here(live))
}

/// Takes a run over. `None` if somebody else was faster, or its node has come back.
pub(crate) async fn adopt(
    node: &Node,
    store: &Store,
    orphan: &Orphan,
) -> Result<Option<Claimed>, ExecuteError> {
    let live = orphan.live();
    let run = &live.attempt.run;
    let adopted = if live.node == node.id {
        store.adopt(&node.id, run, now_ms(), LEASE_MS).await?
    } else {
        store.adopt_for_recovery(run, live.token, &node.owner(), now_ms(), LEASE_MS).await?
    };
    Ok(adopted)
}

async fn remove_orphans(node: &Node) -> Result<Vec<SandboxId>, ExecuteError> {
    // All that is listed is of this state folder. Sandboxes are listed before runs: one that is made in between belongs to a run that is seen.
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

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
