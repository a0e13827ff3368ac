//! From the request to a running worker.

use std::sync::Arc;

use cofferdam_core::{EventType, FailureClass, NewEvent, Outcome};
use cofferdam_sandbox::{Backend, CreateError, Layers, OpenError, Sandbox, SandboxSpec};
use cofferdam_store::{Claimed, failpoint};
use serde_json::json;
use tokio::sync::mpsc;

use super::{Attempt, Entry, Stop};
use crate::attached::{Cancel, Stage};
use crate::node::{Node, now_ms};
use crate::workspace::{self, Handover, Layering, Prepared};

/// A sandbox whose worker runs, or has run.
pub(super) struct Begun {
    pub(super) sandbox: Box<dyn Sandbox>,
    pub(super) handover: Handover,
}

/// Makes the sandbox, or opens the one that the attempt has already.
pub(super) async fn begin(attempt: &mut Attempt<'_>, backend: &Arc<dyn Backend>) -> Result<Begun, Stop> {
    if attempt.entry == Entry::Adopted
        && let Some(begun) = reopen(attempt, &**backend).await?
    {
        return Ok(begun);
    }
    let prepared = prepare(attempt, Layering::Overlay).await?;
    failpoint("runner.prepared");
    attempt.stage(Stage::Sealing);
    backend.validate(&attempt.claimed.request.policy)?;
    let (spec, prepared, sandbox) = create(attempt, &**backend, prepared).await?;
    failpoint("runner.sandbox_created");
    let data = json!({
        "sandbox_id": spec.id,
        "mode": spec.policy.mode,
        "workspace": match sandbox.layers() {
            Layers::Overlay { .. } => "overlay",
            Layers::Folder { .. } => "folder",
        },
        "hidden": prepared.hidden,
    });
    // Stored with the seal. A sandbox that the record does not know has not let its agent in.
    attempt.held.push(NewEvent::new(now_ms(), EventType::SandboxCreated, data));
    Ok(Begun { sandbox, handover: Handover::of(&prepared) })
}

/// Makes the sandbox; where its workspace cannot be layered, with a copy.
async fn create(
    attempt: &mut Attempt<'_>,
    backend: &dyn Backend,
    prepared: Prepared,
) -> Result<(SandboxSpec, Prepared, Box<dyn Sandbox>), Stop> {
    let first = spec(attempt, &prepared);
    match backend.create(&first).await {
        Ok(sandbox) => Ok((first, prepared, sandbox)),
        Err(CreateError::NoOverlay { message, .. }) => {
            tracing::info!(sandbox.id = %first.id, %message, "copying the workspace: it cannot be layered");
            let prepared = prepare(attempt, Layering::Copy).await?;
            let second = spec(attempt, &prepared);
            let sandbox = backend.create(&second).await?;
            Ok((second, prepared, sandbox))
        }
        Err(error) => Err(error.into()),
    }
}

/// The sandbox of a former process. `None` if it never got as far as making one and saying so: then
/// nothing was done that could be done twice.
async fn reopen(attempt: &mut Attempt<'_>, backend: &dyn Backend) -> Result<Option<Begun>, Stop> {
    let id = attempt.sandbox_id();
    let sandbox = match backend.open(&id).await {
        Ok(sandbox) => sandbox,
        Err(OpenError::NotFound(_)) if !has_created(attempt.node, &attempt.claimed).await? => {
            return Ok(None);
        }
        Err(OpenError::NotFound(_)) => {
            let message = "the sandbox is gone, and nothing is left that saw how it ended";
            return Err(Stop::outcome(Outcome::failed(FailureClass::Lost, message)));
        }
        Err(error) => return Err(error.into()),
    };
    // No job is sent before the record says that the sandbox is made: this one may be half made, and its
    // agent has not started.
    if !has_created(attempt.node, &attempt.claimed).await? {
        sandbox.destroy().await?;
        return Ok(None);
    }
    let handover = Handover::load(&attempt.node.home, &id)?;
    Ok(Some(Begun { sandbox, handover }))
}

/// Whether the record says that the attempt's sandbox is made.
pub(crate) async fn has_created(node: &Node, claimed: &Claimed) -> Result<bool, cofferdam_store::Error> {
    let number = claimed.attempt.number;
    let mut after = 0;
    loop {
        let events = node.store.events_after(&claimed.attempt.run, after, 500).await?;
        let Some(last) = events.last() else { return Ok(false) };
        after = last.seq;
        let created = |event: &cofferdam_core::Event| {
            event.attempt == Some(number) && event.event_type == EventType::SandboxCreated
        };
        if events.iter().any(created) {
            return Ok(true);
        }
    }
}

/// Prepares the workspace in a thread of its own, telling what it does. A cancel ends it at its next step.
async fn prepare(attempt: &mut Attempt<'_>, layering: Layering) -> Result<Prepared, Stop> {
    attempt.stage(Stage::Preparing(String::new()));
    let (tell, mut told) = mpsc::unbounded_channel();
    let home = attempt.node.home.clone();
    let id = attempt.sandbox_id();
    let request = attempt.claimed.request.clone();
    let asked = attempt.cancel.clone();
    let mut preparing = tokio::task::spawn_blocking(move || {
        let mut tell = |text: String| {
            let _ = tell.send(text);
        };
        let is_cancelled = || *asked.borrow() != Cancel::No;
        let mut progress = workspace::Progress::new(&mut tell, &is_cancelled);
        workspace::prepare(&home, &id, &request.source, &request.policy, layering, &mut progress)
    });
    let prepared = loop {
        tokio::select! {
            prepared = &mut preparing => break prepared,
            Some(text) = told.recv() => attempt.stage(Stage::Preparing(text)),
        }
    };
    if *attempt.cancel.borrow() != Cancel::No {
        return Err(Stop::outcome(Outcome::Cancelled));
    }
    match prepared {
        Ok(prepared) => Ok(prepared?),
        Err(panic) => Err(Stop::outcome(Outcome::failed(FailureClass::Workspace, panic.to_string()))),
    }
}

fn spec(attempt: &Attempt<'_>, prepared: &Prepared) -> SandboxSpec {
    SandboxSpec {
        id: attempt.sandbox_id(),
        node: attempt.node.id.clone(),
        policy: attempt.claimed.request.policy.clone(),
        workspace: prepared.workspace.clone(),
        companions: prepared.companions.clone(),
        read_only: prepared.read_only.clone(),
        alias: prepared.alias.clone(),
        attachment: attempt.node.attachment,
    }
}
