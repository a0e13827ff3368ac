//! Waiting for one's turn: behind earlier messages to the same agent, or for a free slot.

use std::num::NonZeroU32;
use std::time::Duration;

use cofferdam_core::{Actor, RunId, RunRequest, WorkspaceKind};
use cofferdam_store::{Claimed, Slots};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::lease_times::LEASE_MS;
use crate::node::{Node, now_ms};
use crate::progress::{Cancel, Progress, Stage};
use crate::recovery;
use crate::run_error::RunError;

/// How often somebody who waits looks whether a slot is free, and whether the run was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often it asks for one all the same, which keeps its place in the line, and ends the runs of dead processes.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// Claims a run that belongs to this process, and waits until its turn has come. `None` if it was cancelled meanwhile.
pub(crate) async fn wait_for_turn(
    node: &Node,
    request: &RunRequest,
    actor: &Actor,
    watch: &mut (dyn FnMut(Progress) + Send),
    mut cancel: watch::Receiver<Cancel>,
) -> Result<Option<Claimed>, RunError> {
    let run = &request.id;
    loop {
        // Another run that waits is a dispatcher's: here it would end with this terminal.
        let claimed = node.store.claim_run(run, &node.owner(), now_ms(), LEASE_MS, &node.rules).await?;
        if claimed.is_some() {
            return Ok(claimed);
        }
        if node.store.run(run).await?.state.is_final() {
            return Ok(None);
        }
        recovery::end_dead(node).await?;
        let is_behind = request.workspace == WorkspaceKind::Direct && node.store.is_behind(run).await?;
        let look = async {
            match node.rules.slots {
                _ if is_behind => look_ahead(node, watch).await,
                Slots::Unlimited if request.workspace == WorkspaceKind::Direct => {}
                Slots::Unlimited => return Err(RunError::NotClaimable(run.clone())),
                Slots::AtMost(slots) => look_for_slot(node, run, slots, watch).await?,
            }
            Ok(())
        };
        // What was heard is a lock, which must not be held while the record is asked.
        let cancelled = async { cancel.wait_for(|asked| *asked != Cancel::No).await.map(drop) };
        tokio::select! {
            looked = look => looked?,
            Ok(()) = cancelled => {
                node.operations().cancel_run(actor, run).await?;
                return Ok(None);
            }
        }
    }
}

/// Returns when whoever is ahead may have ended.
async fn look_ahead(node: &Node, watch: &mut (dyn FnMut(Progress) + Send)) {
    watch(Progress::Stage(Stage::InLine));
    let mut wakes = node.wakes.clone();
    wakes.mark_unchanged();
    tokio::select! {
        () = tokio::time::sleep(LOOK_EVERY) => {}
        Ok(()) = wakes.changed() => {}
    }
}

/// Returns when it makes sense to ask for a slot.
async fn look_for_slot(
    node: &Node,
    run: &RunId,
    slots: NonZeroU32,
    watch: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), RunError> {
    let asked_at = Instant::now();
    loop {
        let in_use = node.store.slots_in_use(now_ms()).await?;
        watch(Progress::Stage(Stage::Waiting { in_use, slots: slots.get() }));
        tokio::time::sleep(LOOK_EVERY).await;
        let is_over = node.store.run(run).await?.state.is_final();
        if is_over || in_use < slots.get() || asked_at.elapsed() >= ASK_EVERY {
            return Ok(());
        }
    }
}
