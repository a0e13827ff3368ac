//! One attempt, top to bottom. This is the straight line; everything else serves it.

mod begin;
mod direct;
mod heard;
mod hold;
mod keeper;
pub(crate) mod lines;
mod mail;
mod phases;
mod release;
mod stop;
mod supervise;
mod way_out;

use std::sync::Arc;

use cofferdam_core::{
    AttemptRef, DeadLetter, Decision, ErrorClass, Event, EventType, Evidence, FailureClass, NewEvent,
    Outcome, Policy, Redactor, RetryPolicy, RunState, SandboxExit, SandboxId, Work, conclude, decide,
    with_causes,
};
use cofferdam_sandbox::Backend;
use cofferdam_store::{Claimed, Left, failpoint};
use serde_json::json;
use tokio::sync::watch;

use crate::attempt_secrets::AllowedValues;
use crate::node::{Node, now_ms};
use crate::progress::{Cancel, Progress, Stage};
use crate::publish::Published;
use crate::{artifacts, attempt_secrets, dead_letters, redaction, workspace};
use begin::begin;
pub(crate) use begin::has_created;
use hold::Hold;
use keeper::Keeper;
pub use stop::ExecuteError;
use stop::Stop;
use supervise::Ended;

/// Whether an attempt that failed may be followed by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retries {
    /// As the run's policy says.
    AsAsked,
    /// No: the only process that could claim the run again is dead.
    Never,
}

/// Whether the attempt starts here or has started before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It was claimed just now.
    Claimed,
    /// It was taken over from a process that died.
    Adopted,
    /// It was taken over from a node of another machine, which has not renewed its lease. Its sandbox is there, so that
    /// there is nothing to go on with.
    Lost,
}

/// Where a run stands after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct After {
    pub(crate) state: RunState,
    /// How the attempt ended.
    pub(crate) outcome: Outcome,
    /// When it may be claimed again, if it is queued.
    pub(crate) not_before_ms: u64,
}

/// What one attempt works with.
pub(crate) struct Attempt<'a> {
    pub(crate) node: &'a Node,
    /// Whatever is recorded goes through it.
    pub(crate) redactor: Redactor,
    pub(crate) claimed: Claimed,
    pub(crate) entry: Entry,
    pub(crate) retries: Retries,
    pub(crate) watch: &'a mut (dyn FnMut(Progress) + Send),
    pub(crate) cancel: watch::Receiver<Cancel>,
    /// Events that are stored with the next ones: each commit waits for the disk.
    pub(crate) held: Vec<NewEvent>,
}

/// Executes one attempt and records how it ended.
///
/// The sandbox is destroyed here, in one place, whatever happened before. An attempt that is no longer this node's is
/// released ([`release`]).
pub(crate) async fn execute(mut attempt: Attempt<'_>) -> Result<After, ExecuteError> {
    let keeper = Keeper::start(attempt.node, &attempt.claimed.lease, attempt.cancel.clone());
    attempt.cancel = keeper.cancel();
    let mut left = Left::default();
    let ended = tokio::select! {
        biased;
        ended = run(&mut attempt, &mut left) => ended,
        hold = keeper.lost() => return release::after_lease_loss(&mut attempt, hold).await,
    };
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(Stop::Outcome(outcome)) => *outcome,
        Err(Stop::Store(error)) => return release::after_error(&mut attempt, error.into()).await,
    };
    let outcome = redaction::redact_outcome(&attempt.redactor, outcome);
    if keeper.hold() != Hold::Ours {
        return release::after_lease_loss(&mut attempt, keeper.hold()).await;
    }
    match finish(&mut attempt, outcome, left).await {
        Ok(after) => {
            destroy(&mut attempt).await;
            Ok(after)
        }
        Err(error) => release::after_error(&mut attempt, error).await,
    }
}

/// What the run is for.
async fn run(attempt: &mut Attempt<'_>, left: &mut Left) -> Result<Outcome, Stop> {
    if attempt.entry == Entry::Lost {
        let message = "the node that had the run is gone: its lease ran out, and nobody renewed it";
        return Ok(Outcome::failed(FailureClass::Lost, message));
    }
    match attempt.claimed.request.work.clone() {
        Work::Direct(setup) => direct::run(attempt, &setup).await,
        Work::Spec(setup) => match phases::refuse(&setup) {
            Some(refused) => Ok(refused),
            None => run_in_sandbox(attempt, left).await,
        },
        Work::Program { .. } | Work::Agent { .. } => run_in_sandbox(attempt, left).await,
    }
}

/// From the workspace to what the agent left.
async fn run_in_sandbox(attempt: &mut Attempt<'_>, left: &mut Left) -> Result<Outcome, Stop> {
    let backend = attempt.backend()?;
    let begun = begin(attempt, &backend).await?;
    let mut ended = supervise::supervise(attempt, &*backend, &begun).await?;
    let policy = &attempt.claimed.request.policy;
    let timeout_ms = policy.timeout_ms;
    attempt.node.broker.close(&attempt.node.store, &attempt.claimed.attempt).await;
    attempt.tell(ended.heard.rest());
    if let Some(outcome) = ended.refused {
        return Ok(outcome);
    }
    if let (Some(memory), Some(session)) = (&begun.memory, &ended.session)
        && let Err(error) = memory.remember(&session.id)
    {
        tracing::warn!(%error, "which session goes on could not be recorded");
    }
    attempt.stage(Stage::Collecting);
    let attended = artifacts::Attended {
        node: attempt.node,
        claimed: &attempt.claimed,
        redactor: &attempt.redactor,
        sandbox: &*begun.sandbox,
        handover: &begun.handover,
    };
    let kept = async {
        match &begun.handover.direct {
            Some(folder) => {
                let session = ended.session.as_ref().map(|session| (session.id.as_str(), session.resumed));
                attended.keep_reply(&folder.0, ended.last_words(), session).await
            }
            None => attended.keep().await,
        }
    };
    // Nothing of it lives any more. How it ended may take the engine a while, and what it left is collected meanwhile.
    let (exit, kept) = tokio::join!(begun.sandbox.wait(), kept);
    let outcome = conclude_with(attempt.node, &attempt.claimed, &ended, &exit?, timeout_ms).await?;
    match kept {
        Ok(mut kept) => {
            failpoint("runner.artifacts");
            let diff = kept.diff.take();
            *left = kept.left(now_ms());
            let outcome = match (attempt.claimed.request.publish.clone(), diff, outcome) {
                (Some(asked), Some(diff), Outcome::Succeeded) => {
                    attempt.stage(Stage::Publishing);
                    let (node, claimed) = (attempt.node, &attempt.claimed);
                    let (sandbox, handover) = (&*begun.sandbox, &begun.handover);
                    let published = Published { node, claimed, sandbox, handover };
                    published.publish(&asked, &diff, left).await
                }
                (_, _, outcome) => outcome,
            };
            Ok(artifacts::share(attempt.node, left, outcome).await)
        }
        // What the agent did is not in doubt, and only a success claims that its diff is there.
        Err(error) if outcome == Outcome::Succeeded => {
            Ok(Outcome::failed(FailureClass::Collect, with_causes(&error)))
        }
        Err(error) => {
            let text = format!("the diff could not be collected: {}", with_causes(&error));
            left.events.push(NewEvent::new(now_ms(), EventType::Log, json!({ "text": text })));
            Ok(outcome)
        }
    }
}

/// Adds what the broker saw to the evidence.
async fn conclude_with(
    node: &Node,
    claimed: &Claimed,
    ended: &Ended,
    outside: &SandboxExit,
    timeout_ms: u64,
) -> Result<Outcome, Stop> {
    let budget_exceeded = node.store.budget_exceeded(&claimed.attempt.run).await?;
    let trouble = node.store.last_trouble(&claimed.attempt).await?;
    let outcome = conclude(&Evidence {
        worker: ended.worker.as_ref().map(|exited| &exited.end),
        report: ended.worker.as_ref().and_then(|exited| exited.report.as_ref()),
        outside,
        cancel_requested: ended.cancelled,
        timeout_ms,
        budget_exceeded: budget_exceeded.as_deref(),
        trouble: trouble.as_ref(),
    });
    Ok(with_image_hint(outcome, &claimed.request.policy))
}

/// In a container it is the image that has no such program, whatever is installed here.
fn with_image_hint(outcome: Outcome, policy: &Policy) -> Outcome {
    match outcome {
        Outcome::Failed { class: FailureClass::AgentMissing, message, hint: None, .. }
            if policy.mode.is_container() =>
        {
            let image = &policy.container.image;
            let message = format!("{message} (in the image {image})");
            let hint =
                "`cofferdam sandbox build-image` makes an image with the agents; --image names another";
            Outcome::failed_with_hint(FailureClass::AgentMissing, message, hint)
        }
        outcome => outcome,
    }
}

async fn finish(attempt: &mut Attempt<'_>, outcome: Outcome, mut left: Left) -> Result<After, ExecuteError> {
    left.events.splice(0..0, std::mem::take(&mut attempt.held));
    redaction::redact_events(&attempt.redactor, &mut left.events);
    let Claimed { request, attempt: tried, lease } = &attempt.claimed;
    let now = now_ms();
    let retry = match attempt.retries {
        Retries::AsAsked => request.retry.clone(),
        Retries::Never => RetryPolicy { max_attempts: tried.number, ..request.retry.clone() },
    };
    let store = &attempt.node.store;
    let before = outcome_before(attempt.node, tried).await?;
    let (recorded, not_before_ms) = match decide(tried, &outcome, before.as_ref(), &retry) {
        Decision::RetryAfter { delay_ms } => {
            let not_before = now.saturating_add(delay_ms);
            (store.schedule_retry(lease, &outcome, not_before, &left, now).await?, not_before)
        }
        Decision::Finish => (store.finish(lease, &outcome, &left, now).await?, now),
        Decision::DeadLetter { class } => {
            let letter = attempt.letter(&outcome, class, now);
            left.letter = Some(letter.clone());
            let recorded = store.finish(lease, &outcome, &left, now).await?;
            dead_letters::write(attempt.node, &tried.run, &letter);
            (recorded, now)
        }
    };
    attempt.tell(recorded.events);
    // A slot is free, and a lane, a conversation or a folder may be.
    store.wake();
    Ok(After { state: recorded.state, outcome, not_before_ms })
}

/// How the attempt before this one ended, if there was one.
async fn outcome_before(node: &Node, tried: &AttemptRef) -> Result<Option<Outcome>, ExecuteError> {
    match tried.number.checked_sub(1) {
        Some(number) => Ok(node.store.outcome_of(&AttemptRef { number, ..tried.clone() }).await?),
        None => Ok(None),
    }
}

/// Removes the sandbox and the workspace. What cannot be removed now is removed by the next sweep; the run
/// has its true end already.
async fn destroy(attempt: &mut Attempt<'_>) {
    let id = attempt.sandbox_id();
    // Once more, for a line that ended early.
    attempt.node.broker.close(&attempt.node.store, &attempt.claimed.attempt).await;
    let destroyed = match attempt.backend() {
        Ok(backend) => match backend.open(&id).await {
            Ok(sandbox) => sandbox.destroy().await.map_err(|error| with_causes(&error)).map(|()| true),
            Err(cofferdam_sandbox::OpenError::NotFound(_)) => Ok(false),
            Err(error) => Err(with_causes(&error)),
        },
        Err(_) => Ok(false),
    };
    failpoint("runner.destroyed");
    let home = attempt.node.home.clone();
    let removed = {
        let id = id.clone();
        tokio::task::spawn_blocking(move || workspace::remove(&home, &id)).await
    };
    failpoint("runner.workspace_removed");
    if let Ok(Err(error)) = removed {
        tracing::warn!(sandbox.id = %id, error = %with_causes(&error), "a workspace could not be removed");
    }
    let event = match destroyed {
        Ok(false) => return,
        Ok(true) => NewEvent::new(now_ms(), EventType::SandboxDestroyed, json!({ "sandbox_id": id })),
        Err(message) => {
            tracing::warn!(sandbox.id = %id, %message, "a sandbox could not be destroyed");
            let data = json!({ "sandbox_id": id, "message": message });
            NewEvent::new(now_ms(), EventType::SandboxError, data)
        }
    };
    if let Err(error) = attempt.append(vec![event]).await {
        tracing::warn!(sandbox.id = %id, ?error, "the end of a sandbox could not be recorded");
    }
}

impl Attempt<'_> {
    pub(crate) fn sandbox_id(&self) -> SandboxId {
        SandboxId::of(&self.claimed.attempt)
    }

    fn backend(&self) -> Result<Arc<dyn Backend>, Stop> {
        let mode = self.claimed.request.policy.mode;
        self.node.backends.get(&mode).cloned().ok_or_else(|| {
            Stop::outcome(Outcome::failed(
                FailureClass::Refused,
                format!("this node has no backend for `{mode}`"),
            ))
        })
    }

    fn letter(&self, outcome: &Outcome, class: ErrorClass, now_ms: u64) -> DeadLetter {
        let values = match self.entry {
            Entry::Claimed => AllowedValues::Known,
            Entry::Adopted | Entry::Lost => attempt_secrets::values_left(self.node, &self.claimed),
        };
        dead_letters::letter_of(&self.claimed, outcome, class, &self.redactor, values, now_ms)
    }

    fn stage(&mut self, stage: Stage) {
        (self.watch)(Progress::Stage(match stage {
            // The words of a git server, which may repeat the address with its password.
            Stage::Preparing(text) => Stage::Preparing(self.redactor.text(&text).into_owned()),
            stage @ (Stage::Waiting { .. }
            | Stage::InLine
            | Stage::Sealing
            | Stage::Running
            | Stage::Collecting
            | Stage::Publishing) => stage,
        }));
    }

    fn tell(&mut self, events: Vec<Event>) {
        for event in events {
            (self.watch)(Progress::Event(event));
        }
        // A hint for readers in other processes; whoever misses it polls.
        self.node.store.wake_readers();
    }

    /// Events after those that wait, without secrets.
    fn with_held(&mut self, events: Vec<NewEvent>) -> Vec<NewEvent> {
        let mut all = std::mem::take(&mut self.held);
        all.extend(events);
        redaction::redact_events(&self.redactor, &mut all);
        all
    }

    /// Stores events and then tells whoever watches: what was shown is never lost.
    async fn append(&mut self, events: Vec<NewEvent>) -> Result<(), Stop> {
        let events = self.with_held(events);
        if !events.is_empty() {
            // While the record is away this waits, and nothing more of the worker's output is read.
            let stored = self.node.store.append(&self.claimed.lease, &events).await?;
            self.tell(stored);
        }
        Ok(())
    }
}
