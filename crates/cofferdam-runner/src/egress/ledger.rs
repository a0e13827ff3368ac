//! The broker's ledger, kept in the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use cofferdam_broker::{CallBegun, CallEnded, CallId, Ledger, LedgerError};
use cofferdam_core::{AttemptRef, Event, NewEvent, Redactor, RunId, Spent, with_causes};
use cofferdam_operations::now_ms;
use cofferdam_store::Store;
use tokio::sync::broadcast;

use crate::home::Home;
use crate::redaction;

/// Events that may wait for whoever watches at a terminal. One who is slower misses some there; none is missing
/// in the store.
const TOLD: usize = 256;

/// Keeps in the store what a broker spends and decides.
#[derive(Clone)]
pub struct StoreLedger {
    store: Store,
    home: Home,
    told: broadcast::Sender<(AttemptRef, Event)>,
    redactor: Redactor,
    /// The attempts that are served, and those of which a call is still to end.
    of_attempts: Arc<Mutex<HashMap<AttemptRef, Served>>>,
}

/// What is kept of an attempt. Its own secrets are in it, so it is kept no longer than something can come of it.
#[derive(Default)]
struct Served {
    /// Made when it is first needed: by then what the agent may see is written down. Later that is gone with the workspace.
    redactor: Option<Redactor>,
    calls_in_flight: usize,
    is_closed: bool,
}

impl StoreLedger {
    /// A ledger in this store.
    #[must_use]
    pub fn new(store: Store, home: Home, redactor: Redactor) -> Self {
        let (told, _) = broadcast::channel(TOLD);
        Self { store, home, told, redactor, of_attempts: Arc::default() }
    }

    /// The attack: an agent asks for a host whose name is a secret that it was allowed to see, or a server
    /// repeats the key in its error.
    fn redactor_of(&self, attempt: &AttemptRef) -> Redactor {
        let make = || redaction::with_remembered(&self.redactor, &self.home, attempt);
        match self.attempts().get_mut(attempt) {
            Some(served) => served.redactor.get_or_insert_with(make).clone(),
            None => make(),
        }
    }

    fn attempts(&self) -> MutexGuard<'_, HashMap<AttemptRef, Served>> {
        // Nothing that runs under the lock leaves it half-changed.
        self.of_attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known of an attempt, and forgets it if nothing more can come.
    fn change(&self, attempt: &AttemptRef, change: impl FnOnce(&mut Served)) {
        let mut attempts = self.attempts();
        let Some(served) = attempts.get_mut(attempt) else { return };
        change(served);
        if served.is_closed && served.calls_in_flight == 0 {
            attempts.remove(attempt);
        }
    }

    /// What is written from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<(AttemptRef, Event)> {
        self.told.subscribe()
    }

    fn tell(&self, attempt: &AttemptRef, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        for event in events {
            // Nobody may be watching.
            let _ = self.told.send((attempt.clone(), event));
        }
        self.store.wake_readers();
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn failed(error: cofferdam_store::Error) -> LedgerError {
    LedgerError(with_causes(&error))
}

#[async_trait]
impl Ledger for StoreLedger {
    fn opened(&self, attempt: &AttemptRef) {
        self.attempts().entry(attempt.clone()).or_default().is_closed = false;
    }

    fn closed(&self, attempt: &AttemptRef) {
        // For the calls that are still to end: what the agent was allowed to see may be gone by then.
        drop(self.redactor_of(attempt));
        self.change(attempt, |served| served.is_closed = true);
    }

    async fn record(&self, attempt: &AttemptRef, mut events: Vec<NewEvent>) -> Result<(), LedgerError> {
        redaction::redact_events(&self.redactor_of(attempt), &mut events);
        let stored = self.store.record_egress(attempt, &events).await.map_err(failed)?;
        self.tell(attempt, stored);
        Ok(())
    }

    async fn spent(&self, run: &RunId) -> Result<Spent, LedgerError> {
        self.store.spent(run).await.map_err(failed)
    }

    async fn begin_call(&self, attempt: &AttemptRef, call: CallBegun) -> Result<CallId, LedgerError> {
        let begun = self.store.begin_call(attempt, &call.model, &call.reserved, call.at_ms).await;
        let id = begun.map(CallId).map_err(failed)?;
        self.change(attempt, |served| served.calls_in_flight += 1);
        Ok(id)
    }

    async fn end_call(&self, attempt: &AttemptRef, id: CallId, call: CallEnded) -> Result<(), LedgerError> {
        let CallEnded { spent, mut trouble, mut events } = call;
        let redactor = self.redactor_of(attempt);
        redaction::redact_events(&redactor, &mut events);
        if let Some(trouble) = &mut trouble {
            redactor.string(&mut trouble.message);
        }
        let stored = self.store.end_call(attempt, id.0, &spent, trouble.as_ref(), &events, now_ms()).await;
        self.change(attempt, |served| served.calls_in_flight = served.calls_in_flight.saturating_sub(1));
        self.tell(attempt, stored.map_err(failed)?);
        Ok(())
    }

    async fn budget_exceeded(&self, attempt: &AttemptRef, which: &str) -> Result<(), LedgerError> {
        let stored = self.store.exceed_budget(attempt, which, now_ms()).await.map_err(failed)?;
        self.tell(attempt, stored);
        // Whoever supervises the attempt ends it.
        self.store.wake();
        Ok(())
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
