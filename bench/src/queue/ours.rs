//! The record as nodes use it: accept, claim, finish.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use cofferdam_core::{Action, Actor, NodeId, Outcome, PlaceId, Policy, RunId, RunRequest, Source, Work};
use cofferdam_mandate::issue;
use cofferdam_runner::now_ms;
use cofferdam_store::{ClaimRules, Left, Owner, Store};
use serde_json::json;

use super::number;

/// The time that so many runs take, one after the other.
pub(super) async fn round(store: &Store, round: usize, runs: u32) -> anyhow::Result<Duration> {
    let owner = Owner { node: NodeId::new(1, 1), place: PlaceId::new(1, 1) };
    let rules = ClaimRules::default();
    let started = Instant::now();
    for index in 0..runs {
        let request = request(number(round, index));
        let mandate = issue(&Actor::LocalUser, Action::CreateRun, request.id.as_str(), json!({}), now_ms());
        store.enqueue(&mandate, &request, None).await?;
        let claimed = store.claim(&owner, now_ms(), 30_000, &rules).await?.context("nothing to claim")?;
        store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), now_ms()).await?;
    }
    Ok(started.elapsed())
}

/// A small request, as the bare loop writes it too.
pub(super) fn request(number: u128) -> RunRequest {
    RunRequest::new(
        RunId::new(now_ms(), number),
        Source::Empty,
        Work::Program { argv: vec!["true".to_owned()] },
        Policy::default(),
    )
}
