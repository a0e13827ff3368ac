//! Whether the record is true.

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_core::{Event, EventType, Mode, RunId, RunState};
use cofferdam_scripted_model::Kind;
use cofferdam_store::{AttemptRecord, RunRecord};

use crate::chaos::cast::Cast;
use crate::chaos::sent::FAILS;

/// Looks at every run.
pub(crate) fn check(cast: &Cast, accepted: &[RunId]) {
    let runs = cast.runs();
    let sent: BTreeSet<&RunId> = accepted.iter().collect();
    assert_eq!(sent.len(), accepted.len(), "no request was answered with the run of another");
    let others: Vec<&RunId> = runs.keys().filter(|run| !sent.contains(run)).collect();
    assert!(others.is_empty(), "a lost answer made a second run: {others:?}");
    assert_eq!(runs.len(), sent.len(), "what was accepted is on record");
    let mut interrupted = BTreeSet::new();
    for (number, run) in accepted.iter().enumerate() {
        let events = cast.ask(async |store| store.events_after(run, 0, 100_000).await);
        let attempts = cast.ask(async |store| store.attempts(run).await);
        one_end(&runs[run], &events);
        ended_as_it_had_to(number, &runs[run]);
        numbered_without_gap(run, &events);
        attempts_follow_each_other(run, &runs[run], &attempts);
        started_once_an_attempt(cast, number, run, &attempts);
        if events.iter().any(|event| event.event_type == EventType::EgressInterrupted) {
            interrupted.insert(number);
        }
    }
    no_step_was_asked_twice(cast, &runs, accepted, &interrupted);
    let examined = cast.ask(async |store| store.check().await);
    assert!(examined.problems.is_empty(), "{:?}", examined.problems);
}

fn one_end(record: &RunRecord, events: &[Event]) {
    let run = &record.request.id;
    assert!(record.state.is_final(), "{run} is {}", record.state);
    let ends = events.iter().filter(|event| event.event_type == EventType::RunFinished).count();
    assert_eq!(ends, 1, "{run} ended {ends} times");
    assert!(record.outcome.is_some() && record.finished_at_ms.is_some(), "{run} has no evidence of its end");
}

/// What was done to the nodes is no reason for a run of theirs to end otherwise. A container's engine is not ours.
fn ended_as_it_had_to(number: usize, record: &RunRecord) {
    let expected = if number as u64 % 6 == FAILS { RunState::Failed } else { RunState::Succeeded };
    if record.request.policy.mode == Mode::Native {
        assert_eq!(record.state, expected, "{}: {:?}", record.request.id, record.outcome);
    }
}

fn numbered_without_gap(run: &RunId, events: &[Event]) {
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "{run}");
}

/// No number is used twice, and no attempt begins before the one before it has ended: so no two leases overlapped.
fn attempts_follow_each_other(run: &RunId, record: &RunRecord, attempts: &[AttemptRecord]) {
    let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (1..=record.attempts).collect::<Vec<_>>(), "{run}");
    for pair in attempts.windows(2) {
        let ended = pair[0].ended_at_ms.unwrap_or(u64::MAX);
        assert!(ended <= pair[1].started_at_ms, "{run}: attempt {} overlaps the next", pair[0].number);
    }
}

/// An attempt that was adopted is the same attempt: its agent is not started again.
fn started_once_an_attempt(cast: &Cast, number: usize, run: &RunId, attempts: &[AttemptRecord]) {
    let mark = cast.marks.folder().join(format!("run-{number}"));
    let marks = std::fs::read_to_string(mark).unwrap_or_default();
    let started = marks.lines().filter(|line| *line == "started").count();
    assert!(started <= attempts.len(), "{run} started {started} times in {} attempts", attempts.len());
}

/// A step is asked again only by another attempt, or because the broker was killed under it, which is on record.
fn no_step_was_asked_twice(
    cast: &Cast,
    runs: &BTreeMap<RunId, RunRecord>,
    accepted: &[RunId],
    interrupted: &BTreeSet<usize>,
) {
    let mut asked: BTreeMap<String, u32> = BTreeMap::new();
    for request in cast.model.requests().iter().filter(|request| request.kind == Kind::Call) {
        let step = request.body["messages"][0]["content"].as_str().expect("our own words");
        *asked.entry(step.to_owned()).or_default() += 1;
    }
    assert!(!asked.is_empty(), "no run has asked the model anything");
    for (step, times) in asked {
        let number: usize = step.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("our own words");
        let attempts = runs[&accepted[number]].attempts;
        assert!(
            times <= attempts || interrupted.contains(&number),
            "`{step}` was asked {times} times in {attempts} attempts, and no interruption is on record"
        );
    }
}
