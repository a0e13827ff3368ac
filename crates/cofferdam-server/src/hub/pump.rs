//! Looks for what is new of the runs that somebody reads.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_api::{RunEnd, sse};
use cofferdam_core::{Event, RunId, with_causes};
use cofferdam_store::{Error, RunMark, Wakes};
use tokio::time::{Instant, sleep_until};

use super::{LiveRun, Standing, Watched};

/// Between the beginnings of two looks at most, so that a burst of wakes is one look.
const MOST_REST: Duration = Duration::from_millis(15);
/// And at least. In between it is four times as long as the look itself took, so that looking takes a quarter of one
/// task's time, and news of few runs is not late.
const LEAST_REST: Duration = Duration::from_millis(2);
/// Wakes are hints: without one it is looked all the same.
const POLL: Duration = Duration::from_millis(250);
/// After the store has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// What is read of one run at a time, so that a busy one does not hold up the others.
const PAGE: u32 = 200;

/// Looks again and again, as long as somebody could read.
pub(super) async fn run(watched: Arc<Watched>, wakes: Wakes) {
    let mut count = wakes.count();
    loop {
        let live = watched.live();
        if live.is_empty() {
            watched.added.notified().await;
            continue;
        }
        let begun = Instant::now();
        count.mark_unchanged();
        let pause = match look(&watched, &live).await {
            Ok(true) => Duration::ZERO,
            Ok(false) => POLL,
            Err(error) => {
                tracing::warn!(error = %with_causes(&error), "live runs cannot be read; trying again");
                AFTER_FAILURE
            }
        };
        drop(live);
        let rest = (begun.elapsed() * 4).clamp(LEAST_REST, MOST_REST);
        tokio::select! {
            _ = count.changed() => {}
            () = watched.added.notified() => {}
            () = sleep_until(begun + pause) => {}
        }
        sleep_until(begun + rest).await;
    }
}

/// Returns whether there is more to read at once.
async fn look(watched: &Watched, live: &[(RunId, Arc<LiveRun>)]) -> Result<bool, Error> {
    let ids: Vec<RunId> = live.iter().map(|(run, _)| run.clone()).collect();
    let marks: HashMap<RunId, RunMark> =
        watched.store.run_marks(&ids).await?.into_iter().map(|mark| (mark.run.clone(), mark)).collect();
    let mut is_behind = false;
    for (run, live) in live {
        let standing = match marks.get(run) {
            Some(mark) => {
                let (standing, is_all) = look_at(watched, live, mark).await?;
                is_behind |= !is_all;
                standing
            }
            None => Standing::Gone,
        };
        live.standing.send_if_modified(|before| {
            let differs = *before != standing;
            *before = standing;
            differs
        });
    }
    Ok(is_behind)
}

/// How far one run is, and whether that is all.
async fn look_at(watched: &Watched, live: &LiveRun, mark: &RunMark) -> Result<(Standing, bool), Error> {
    let known = match &*live.standing.borrow() {
        Standing::At { last_seq, .. } => *last_seq,
        // What was before anybody looked is read by those who want it.
        Standing::Unknown | Standing::Gone => mark.last_seq,
    };
    let events = match mark.last_seq > known {
        true => watched.store.events_after(&mark.run, known, PAGE).await?,
        false => Vec::new(),
    };
    keep(live, &events);
    let last_seq = events.last().map_or(known, |event| event.seq);
    // A run that has ended adds no event, so that what follows its last mark is all.
    let is_all = last_seq >= mark.last_seq || events.is_empty();
    let end = match mark.state.is_final() && is_all {
        true => {
            let record = watched.store.run(&mark.run).await?;
            Some(RunEnd { run_id: mark.run.clone(), state: record.state, outcome: record.outcome })
        }
        false => None,
    };
    Ok((Standing::At { last_seq, end }, is_all))
}

fn keep(live: &LiveRun, events: &[Event]) {
    let mut recent = live.recent();
    for event in events {
        recent.push(event.seq, frame(event));
    }
}

/// An event as it goes over the wire.
pub(super) fn frame(event: &Event) -> bytes::Bytes {
    let data = serde_json::to_string(event).expect("an event is plain JSON");
    sse::frame(Some(event.seq), event.event_type.as_str(), &data).into()
}
