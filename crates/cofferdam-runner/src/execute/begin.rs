//! From the request to a running worker.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use cofferdam_broker::GitCredential;
use cofferdam_core::{
    EventType, FailureClass, FetchRule, NewEvent, Outcome, RunRequest, SandboxId, Source, WorkspaceKind,
};
use cofferdam_net::AddressCheck;
use cofferdam_sandbox::{Backend, CreateError, OpenError, Sandbox, SandboxSpec, Workspace};
use cofferdam_store::{Claimed, failpoint};
use serde_json::json;
use tokio::sync::mpsc;

use super::way_out::{Program, find_program, find_way_out, open_way_out};
use super::{Attempt, Entry, Stop};
use crate::conversation::Memory;
use crate::egress::Granted;
use crate::node::{Node, now_ms};
use crate::programs::Git;
use crate::progress::{Cancel, Stage};
use crate::workspace::{self, CheckedFetch, Handover, Layering, Prepared};

/// A sandbox whose worker runs, or has run.
pub(super) struct Begun {
    pub(super) sandbox: Box<dyn Sandbox>,
    pub(super) handover: Handover,
    /// The agent's own program, if it is a coding agent.
    pub(super) program: Option<Program>,
    /// Its way out, if it has one.
    pub(super) way_out: Option<Granted>,
    /// What it keeps of its conversation, if it has one.
    pub(super) memory: Option<Memory>,
}

/// Makes the sandbox, or opens the one that the attempt has already.
pub(super) async fn begin(attempt: &mut Attempt<'_>, backend: &Arc<dyn Backend>) -> Result<Begun, Stop> {
    if attempt.entry == Entry::Adopted
        && let Some(begun) = reopen(attempt, &**backend).await?
    {
        return Ok(begun);
    }
    let program = find_program(attempt.node, &attempt.claimed.request)?;
    check_folder(attempt.node, &attempt.claimed.request)?;
    let layering = layering(&attempt.claimed.request, &**backend);
    let policy = attempt.claimed.request.policy.clone();
    // An engine takes its time to say what it can do; the workspace is prepared meanwhile.
    let (prepared, valid) = tokio::join!(prepare(attempt, layering), backend.validate(&policy));
    valid.map_err(|refusal| Stop::refused(refusal, &attempt.claimed.attempt))?;
    let prepared = prepared?;
    failpoint("runner.prepared");
    attempt.stage(Stage::Sealing);
    let memory = open_memory(attempt, &prepared)?;
    let (prepared, made) = make(attempt, &**backend, prepared, program.as_ref(), memory.as_ref()).await?;
    let Made { spec, sandbox, way_out } = made;
    failpoint("runner.sandbox_created");
    let data = json!({
        "sandbox_id": spec.id,
        "mode": spec.policy.mode,
        "workspace": match &spec.workspace {
            Workspace::Direct { .. } => "direct",
            Workspace::Overlay { .. } => "overlay",
            Workspace::Folder { .. } => "folder",
        },
        "hidden": prepared.hidden,
    });
    // Stored with the seal. A sandbox that the record does not know has not let its agent in.
    attempt.held.push(NewEvent::new(now_ms(), EventType::SandboxCreated, data));
    Ok(Begun { sandbox, handover: Handover::of(&prepared), program, way_out, memory })
}

/// Refuses a folder that no agent may own, or that cannot be at its own path inside.
fn check_folder(node: &Node, request: &RunRequest) -> Result<(), Stop> {
    let Source::Local { path } = &request.source else { return Ok(()) };
    if request.workspace == WorkspaceKind::Direct {
        workspace::check_direct(path, node.home.root(), node.caller.home.as_deref())?;
    }
    Ok(workspace::check_target(&request.policy, path)?)
}

/// Opens what the agent keeps of its conversation. One that has to begin anew says so.
fn open_memory(attempt: &mut Attempt<'_>, prepared: &Prepared) -> Result<Option<Memory>, Stop> {
    let request = &attempt.claimed.request;
    let (Some(conversation), Workspace::Direct { path, .. }) = (&request.conversation, &prepared.workspace)
    else {
        return Ok(None);
    };
    let memory = Memory::open(&attempt.node.home, conversation, request.work.provider(), path);
    let memory = memory.map_err(|error| {
        let message =
            format!("what {} keeps of its conversation cannot be opened: {error}", conversation.agent);
        Stop::outcome(Outcome::failed(FailureClass::Workspace, message))
    })?;
    if let Some(note) = memory.note {
        let text = format!("a new session begins: {note}");
        attempt.held.push(NewEvent::new(now_ms(), EventType::Log, json!({ "text": text })));
    }
    Ok(Some(memory))
}

/// How the workspace is tried first.
fn layering(request: &RunRequest, backend: &dyn Backend) -> Layering {
    match request.workspace {
        WorkspaceKind::Direct => return Layering::Direct,
        WorkspaceKind::Overlay => {}
    }
    let owner = match &request.source {
        Source::Local { path } => path.metadata().map(|found| found.uid()).ok(),
        Source::Git { .. } | Source::Empty => None,
    };
    let owner = owner.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    if backend.can_layer(owner) { Layering::Overlay } else { Layering::Copy }
}

/// A sandbox with its way out.
struct Made {
    spec: SandboxSpec,
    sandbox: Box<dyn Sandbox>,
    way_out: Option<Granted>,
}

/// Makes the sandbox; where its workspace cannot be layered, with a copy.
async fn make(
    attempt: &mut Attempt<'_>,
    backend: &dyn Backend,
    prepared: Prepared,
    program: Option<&Program>,
    memory: Option<&Memory>,
) -> Result<(Prepared, Made), Stop> {
    let (node, claimed) = (attempt.node, attempt.claimed.clone());
    match create(node, &claimed, backend, &prepared, program, memory).await {
        Ok(made) => Ok((prepared, made)),
        Err(Refused::Create(CreateError::NoOverlay { message, id })) => {
            tracing::info!(sandbox.id = %id, %message, "copying the workspace: it cannot be layered");
            // The sockets are in the folder that is made anew.
            node.broker.close(&node.store, &claimed.attempt).await;
            let prepared = prepare(attempt, Layering::Copy).await?;
            let made = create(node, &claimed, backend, &prepared, program, memory).await;
            let made = made.map_err(Refused::stop)?;
            Ok((prepared, made))
        }
        Err(refused) => Err(refused.stop()),
    }
}

/// Why there is no sandbox.
enum Refused {
    Create(CreateError),
    Stop(Stop),
}

impl Refused {
    fn stop(self) -> Stop {
        match self {
            Self::Create(error) => error.into(),
            Self::Stop(stop) => stop,
        }
    }
}

async fn create(
    node: &Node,
    claimed: &Claimed,
    backend: &dyn Backend,
    prepared: &Prepared,
    program: Option<&Program>,
    memory: Option<&Memory>,
) -> Result<Made, Refused> {
    let way_out = open_way_out(node, claimed).await.map_err(Refused::Stop)?;
    let spec = SandboxSpec {
        kept: memory.map(Memory::kept).into_iter().collect(),
        shown: program.map(Program::shown).unwrap_or_default().to_vec(),
        egress: way_out.as_ref().map(|granted| granted.folder.clone()),
        ..spec(node, claimed, prepared)
    };
    let sandbox = backend.create(&spec).await.map_err(Refused::Create)?;
    Ok(Made { spec, sandbox, way_out })
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
    // The worker has its job; what it is told again it ignores. So it does not matter what opens the model now.
    let way_out = find_way_out(attempt.node, &attempt.claimed, None)?;
    if way_out.is_some() {
        attempt.node.broker.resume().await;
    }
    let request = &attempt.claimed.request;
    let memory = request
        .conversation
        .as_ref()
        .map(|conversation| Memory::of(&attempt.node.home, &conversation.agent, request.work.provider()));
    Ok(Some(Begun { sandbox, handover, program: None, way_out, memory }))
}

/// Whether the record says that the attempt's sandbox is made.
pub(crate) async fn has_created(node: &Node, claimed: &Claimed) -> Result<bool, cofferdam_store::Error> {
    has_told(node, claimed, EventType::SandboxCreated).await
}

/// Whether the record has an event of this type of the attempt.
pub(super) async fn has_told(
    node: &Node,
    claimed: &Claimed,
    event_type: EventType,
) -> Result<bool, cofferdam_store::Error> {
    let number = claimed.attempt.number;
    let mut after = 0;
    loop {
        let events = node.store.events_after(&claimed.attempt.run, after, 500).await?;
        let Some(last) = events.last() else { return Ok(false) };
        after = last.seq;
        if events.iter().any(|event| event.attempt == Some(number) && event.event_type == event_type) {
            return Ok(true);
        }
    }
}

/// Prepares the workspace in a thread of its own, telling what it does. A cancel ends it at its next step.
pub(super) async fn prepare(attempt: &mut Attempt<'_>, layering: Layering) -> Result<Prepared, Stop> {
    attempt.stage(Stage::Preparing(String::new()));
    let (tell, mut told) = mpsc::unbounded_channel();
    let home = attempt.node.home.clone();
    let id = attempt.sandbox_id();
    let request = attempt.claimed.request.clone();
    let credential = credential(attempt.node, &request.source);
    let rule = fetch_rule(attempt.node, &attempt.claimed).await?;
    let checked = checked_fetch(attempt.node, &request.source, rule);
    let asked = attempt.cancel.clone();
    let mut preparing = tokio::task::spawn_blocking(move || {
        let mut tell = |text: String| {
            let _ = tell.send(text);
        };
        let is_cancelled = || *asked.borrow() != Cancel::No;
        let mut progress = workspace::Progress::new(&mut tell, &is_cancelled);
        let (source, policy) = (&request.source, &request.policy);
        let branch = request.publish.as_ref().map(|publish| &publish.branch);
        let remote = workspace::Remote { credential: credential.as_ref(), branch, checked: checked.as_ref() };
        workspace::prepare(&home, &id, source, policy, layering, remote, &mut progress)
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

/// What opens the run's repository: the same as inside, where the broker adds it.
fn credential(node: &Node, source: &Source) -> Option<GitCredential> {
    match source {
        Source::Git { url, .. } => (node.git)(url),
        Source::Local { .. } | Source::Empty => None,
    }
}

/// The rule that was recorded with the run, or the one for what older versions accepted.
async fn fetch_rule(node: &Node, claimed: &Claimed) -> Result<FetchRule, cofferdam_store::Error> {
    match claimed.request.policy.egress.fetch {
        Some(rule) => Ok(rule),
        None => Ok(FetchRule::of_unrecorded(&node.store.run(&claimed.attempt.run).await?.owner)),
    }
}

/// How the repository is fetched of somebody who is not the user of this machine.
fn checked_fetch(node: &Node, source: &Source, rule: FetchRule) -> Option<CheckedFetch> {
    let check = match rule {
        FetchRule::AsUser => return None,
        FetchRule::Public => AddressCheck::Listed(Vec::new().into()),
        FetchRule::Listed => AddressCheck::Trusted,
    };
    Some(CheckedFetch {
        dialer: node.dialer.clone(),
        check,
        tools: node.tools.clone(),
        git: Git::for_tools(&node.caller.search(source)),
        runtime: tokio::runtime::Handle::current(),
        most_bytes: CheckedFetch::MOST_BYTES,
    })
}

fn spec(node: &Node, claimed: &Claimed, prepared: &Prepared) -> SandboxSpec {
    SandboxSpec {
        id: SandboxId::of(&claimed.attempt),
        node: node.id.clone(),
        policy: claimed.request.policy.clone(),
        workspace: prepared.workspace.clone(),
        target: prepared.target.clone(),
        kept: Vec::new(),
        companions: prepared.companions.clone(),
        read_only: prepared.read_only.clone(),
        shown: Vec::new(),
        egress: None,
        alias: prepared.alias.clone(),
        attachment: node.attachment,
    }
}
