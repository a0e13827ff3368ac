//! The broker's ledger, kept in the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cofferdam_broker::{CallBegun, CallEnded, CallId, Ledger, LedgerError};
use cofferdam_core::{AttemptRef, Event, NewEvent, Redactor, RunId, Spent, with_causes};
use cofferdam_store::Store;
use tokio::sync::broadcast;

use crate::home::Home;
use crate::node::now_ms;
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
    /// The redactor of each attempt that has written something.
    of_attempts: Arc<Mutex<HashMap<AttemptRef, Redactor>>>,
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
    fn redact(&self, attempt: &AttemptRef, events: &mut [NewEvent]) {
        let redactor = {
            let mut known = self.of_attempts.lock().unwrap_or_else(PoisonError::into_inner);
            known
                .entry(attempt.clone())
                .or_insert_with(|| redaction::with_remembered(&self.redactor, &self.home, attempt))
                .clone()
        };
        redaction::redact_events(&redactor, events);
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
    async fn record(&self, attempt: &AttemptRef, mut events: Vec<NewEvent>) -> Result<(), LedgerError> {
        self.redact(attempt, &mut events);
        let stored = self.store.record_egress(attempt, &events).await.map_err(failed)?;
        self.tell(attempt, stored);
        Ok(())
    }

    async fn spent(&self, run: &RunId) -> Result<Spent, LedgerError> {
        self.store.spent(run).await.map_err(failed)
    }

    async fn begin_call(&self, attempt: &AttemptRef, call: CallBegun) -> Result<CallId, LedgerError> {
        let begun = self.store.begin_call(attempt, &call.model, &call.reserved, call.at_ms).await;
        begun.map(CallId).map_err(failed)
    }

    async fn end_call(&self, attempt: &AttemptRef, id: CallId, call: CallEnded) -> Result<(), LedgerError> {
        let CallEnded { spent, mut trouble, mut events } = call;
        self.redact(attempt, &mut events);
        if let Some(trouble) = &mut trouble {
            self.redactor.string(&mut trouble.message);
        }
        let stored = self
            .store
            .end_call(attempt, id.0, &spent, trouble.as_ref(), &events, now_ms())
            .await
            .map_err(failed)?;
        self.tell(attempt, stored);
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
