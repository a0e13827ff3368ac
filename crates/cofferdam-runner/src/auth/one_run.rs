//! One run for a check. It takes the straight line of every run, so that what is found out is true of them; its record
//! is removed when it has ended.

use std::time::Duration;

use cofferdam_core::{
    Actor, ChosenPolicy, Event, Outcome, OwnRole, Policy, RetryPolicy, RunId, RunRequest, Source, Work,
    with_causes,
};
use cofferdam_operations::random_bits;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::attached::run_attached;
use crate::dead_letters;
use crate::node::{Node, now_ms};
use crate::progress::Cancel;

/// How long a run that was told to end may take to do so. An engine that hangs is not waited for any longer: what it
/// leaves dies with this process, and is removed by the next sweep.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// No check has more events than this.
const MOST_EVENTS: u32 = 2_000;

/// Whose runs these are.
const ACTOR: Actor = Actor::Role(OwnRole::AuthCheck);

/// What came of a run.
#[derive(Debug)]
pub(super) struct Seen {
    /// How it ended; `None` if it timed out.
    pub(super) outcome: Option<Outcome>,
    /// What happened, as it was recorded.
    pub(super) events: Vec<Event>,
}

/// Runs an agent in an empty folder until it ends or the deadline has come. An error says why nothing is known.
pub(super) async fn one_run(
    node: &Node,
    work: Work,
    policy: Policy,
    deadline: Instant,
) -> Result<Seen, String> {
    let run = RunId::new(now_ms(), random_bits());
    let request = RunRequest {
        retry: RetryPolicy { max_attempts: 1, ..RetryPolicy::default() },
        ..RunRequest::new(run.clone(), Source::Empty, work, policy)
    };
    let (tell, cancel) = watch::channel(Cancel::No);
    let mut nobody = |_| {};
    let judged = node.operations().judge_request(&ACTOR, request, ChosenPolicy::Unknown).await;
    let judged = judged.map_err(|error| with_causes(&error))?;
    let mut running = Box::pin(run_attached(node, judged, &mut nobody, cancel));
    let ended = tokio::select! {
        ended = &mut running => Some(ended),
        () = tokio::time::sleep_until(deadline) => None,
    };
    let outcome = match ended {
        Some(ended) => {
            let report = ended.map_err(|error| with_causes(&error))?;
            Some(report.outcome).filter(|outcome| !matches!(outcome, Outcome::TimedOut { .. }))
        }
        None => {
            let _ = tell.send(Cancel::Now);
            let _ = tokio::time::timeout(LAST_WORDS, &mut running).await;
            None
        }
    };
    drop(running);
    let events = events_of(node, &run).await.map_err(|error| with_causes(&error))?;
    forget(node, &run).await;
    Ok(Seen { outcome, events })
}

/// What the check told: as much as is looked at.
async fn events_of(node: &Node, run: &RunId) -> Result<Vec<Event>, cofferdam_store::Error> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let left = MOST_EVENTS.saturating_sub(u32::try_from(events.len()).unwrap_or(u32::MAX));
        let page = node.store.events_page(run, after, left).await?;
        let is_full = page.is_full(left);
        events.extend(page.rows);
        if !is_full || u32::try_from(events.len()).is_ok_and(|read| read >= MOST_EVENTS) {
            return Ok(events);
        }
    }
}

/// Removes the record of a check, which is nobody's work. One that has not ended is told of as every other run is.
async fn forget(node: &Node, run: &RunId) {
    if let Err(error) = dead_letters::remove(node, &ACTOR, run).await {
        tracing::warn!(run.id = %run, error = %with_causes(&error), "the dead letter of a check stays");
    }
    match node.operations().remove_run(&ACTOR, run).await {
        Ok(_) => {
            let _ = cofferdam_sandbox::remove_tree(&node.home.runs().join(run.as_str()));
        }
        Err(error) => {
            tracing::warn!(run.id = %run, error = %with_causes(&error), "the record of a check stays");
        }
    }
}
