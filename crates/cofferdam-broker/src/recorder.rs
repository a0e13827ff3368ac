//! The broker's decisions on their way to the ledger. No connection waits for the ledger, and no flood of
//! decisions can fill it: equal ones are merged, and there is an end to how many are written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cofferdam_core::{AttemptRef, EventType, NewEvent};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::ledger::Ledger;
use crate::refusal::Refusal;

/// Different decisions that wait to be written, of those that allowed something and of those that refused. More than a second's
/// worth of honest ones.
const MAX_WAITING: usize = 256;
/// Events of one attempt, of either sort. An honest build makes some hundreds.
const MAX_EVENTS: usize = 4096;
/// How long equal decisions are merged.
const MERGE_TIME: Duration = Duration::from_secs(1);
/// How long the last ones may take to be written when the attempt is closed.
const CLOSE_TIME: Duration = Duration::from_secs(5);
/// What is kept of a target that an agent made up.
const MAX_TARGET: usize = 300;

/// By which way something was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A tunnel.
    Connect,
    /// A plain request, or one to the broker itself.
    Http,
    /// A service on the sandbox's loopback.
    Forward,
    /// The run's own repository.
    Git,
}

/// Writes an attempt's decisions down.
pub(crate) struct Recorder {
    attempt: AttemptRef,
    ledger: Arc<dyn Ledger>,
    state: Mutex<State>,
    wake: Notify,
    stop: Notify,
}

/// The attack: thousands of refusals, behind which a connection that was allowed is not on record. So each sort has room of its own.
#[derive(Default)]
struct State {
    allowed: Room,
    refused: Room,
    /// Events that the ledger did not take; never more than an attempt has.
    unwritten: Vec<NewEvent>,
}

/// The decisions of one sort.
#[derive(Default)]
struct Room {
    waiting: HashMap<Decision, Seen>,
    /// Decisions that did not fit.
    dropped: u64,
    written: usize,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Decision {
    kind: Kind,
    target: String,
    address: Option<String>,
    refusal: Option<(String, Option<String>)>,
}

#[derive(Clone, Copy)]
struct Seen {
    first_ms: u64,
    count: u64,
}

impl Recorder {
    /// A recorder for an attempt. Nothing is written until [`Self::run`] is.
    pub(crate) fn new(attempt: AttemptRef, ledger: Arc<dyn Ledger>) -> Self {
        Self { attempt, ledger, state: Mutex::default(), wake: Notify::new(), stop: Notify::new() }
    }

    /// A connection was opened.
    pub(crate) fn allowed(&self, kind: Kind, target: &str, address: Option<std::net::SocketAddr>) {
        let address = address.map(|address| address.to_string());
        self.note(Decision { kind, target: cut(target), address, refusal: None });
    }

    /// Something was refused, or could not be reached.
    pub(crate) fn refused(&self, kind: Kind, target: &str, refusal: &Refusal) {
        let refusal = Some((cut(&refusal.reason), refusal.hint.clone()));
        self.note(Decision { kind, target: cut(target), address: None, refusal });
    }

    /// Writes decisions down until it is stopped.
    pub(crate) async fn run(&self) {
        loop {
            tokio::select! {
                () = self.wake.notified() => {}
                () = self.stop.notified() => return,
            }
            self.flush().await;
            // The first of a kind is written at once; what comes in the next moment is merged.
            tokio::select! {
                () = tokio::time::sleep(MERGE_TIME) => {}
                () = self.stop.notified() => return,
            }
        }
    }

    /// Stops [`Self::run`], which is never cut while it writes, and writes what is left. Gives up after a
    /// while.
    pub(crate) async fn finish(&self, running: JoinHandle<()>) {
        self.stop.notify_one();
        let abort = running.abort_handle();
        let finished = tokio::time::timeout(CLOSE_TIME, async {
            // It panics with the ledger; what is left is written all the same.
            let _ = running.await;
            self.flush().await;
        });
        if finished.await.is_err() {
            abort.abort();
            tracing::warn!(run.id = %self.attempt.run, "the broker's last decisions were not written in time");
        }
    }

    fn note(&self, decision: Decision) {
        let mut state = self.state();
        match decision.refusal {
            None => state.allowed.note(decision),
            Some(_) => state.refused.note(decision),
        }
        drop(state);
        self.wake.notify_one();
    }

    async fn flush(&self) {
        let events = self.state().take_events();
        if events.is_empty() {
            return;
        }
        if let Err(error) = self.ledger.record(&self.attempt, events.clone()).await {
            tracing::warn!(run.id = %self.attempt.run, %error, "failed to write the broker's decisions down");
            self.state().unwritten = events;
            self.wake.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_events(&mut self) -> Vec<NewEvent> {
        let mut events = std::mem::take(&mut self.unwritten);
        let mut new = self.allowed.take_events("connections that were allowed");
        new.append(&mut self.refused.take_events("refusals"));
        // Stable, so that what was not written is told behind what was.
        new.sort_by_key(|event| event.at_ms);
        events.append(&mut new);
        events
    }
}

impl Room {
    fn note(&mut self, decision: Decision) {
        if let Some(seen) = self.waiting.get_mut(&decision) {
            seen.count += 1;
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.insert(decision, Seen { first_ms: now_ms(), count: 1 });
        } else {
            self.dropped += 1;
        }
    }

    fn take_events(&mut self, what: &str) -> Vec<NewEvent> {
        let mut waiting: Vec<_> = std::mem::take(&mut self.waiting).into_iter().collect();
        waiting.sort_by_key(|(_, seen)| seen.first_ms);
        let lost = std::mem::take(&mut self.dropped);
        let room = MAX_EVENTS.saturating_sub(self.written);
        if room == 0 {
            return Vec::new();
        }
        let is_last = waiting.len() >= room;
        waiting.truncate(room);
        self.written += waiting.len();
        let mut events: Vec<_> = waiting.into_iter().map(|(decision, seen)| decision.event(seen)).collect();
        if lost > 0 {
            events.push(not_written(&format!("{lost} more {what} came too fast to be written down"), lost));
            self.written += 1;
        }
        if is_last {
            self.written = MAX_EVENTS;
            events.push(not_written(&format!("further {what} of this attempt are not written down"), 1));
        }
        events
    }
}

impl Decision {
    fn event(self, seen: Seen) -> NewEvent {
        let kind = match self.kind {
            Kind::Connect => "connect",
            Kind::Http => "http",
            Kind::Forward => "forward",
            Kind::Git => "git",
        };
        let mut data = json!({ "kind": kind, "target": self.target, "count": seen.count });
        if let Some(address) = self.address {
            data["address"] = address.into();
        }
        let event_type = match self.refusal {
            None => EventType::EgressAllowed,
            Some((reason, hint)) => {
                data["reason"] = reason.into();
                if let Some(hint) = hint {
                    data["hint"] = hint.into();
                }
                EventType::EgressRefused
            }
        };
        NewEvent::new(seen.first_ms, event_type, data)
    }
}

fn not_written(reason: &str, count: u64) -> NewEvent {
    let data = json!({ "kind": "http", "target": "", "reason": reason, "count": count });
    NewEvent::new(now_ms(), EventType::EgressRefused, data)
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TARGET).collect()
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
