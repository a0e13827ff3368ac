//! The broker's ledger, kept in the store.

use async_trait::async_trait;
use cofferdam_broker::{CallBegun, CallEnded, CallId, Ledger, LedgerError};
use cofferdam_core::{AttemptRef, Event, NewEvent, RunId, Spent, with_causes};
use cofferdam_store::Store;
use tokio::sync::broadcast;

use crate::home::Home;
use crate::node::now_ms;

/// Events that may wait for whoever watches at a terminal. One who is slower misses some there; none is missing
/// in the store.
const TOLD: usize = 256;

/// Keeps in the store what a broker spends and decides.
#[derive(Clone)]
pub struct StoreLedger {
    store: Store,
    home: Home,
    told: broadcast::Sender<(AttemptRef, Event)>,
}

impl StoreLedger {
    /// A ledger in this store.
    #[must_use]
    pub fn new(store: Store, home: Home) -> Self {
        let (told, _) = broadcast::channel(TOLD);
        Self { store, home, told }
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
        let _ = cofferdam_store::wake_all(&self.home.nodes());
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn failed(error: cofferdam_store::Error) -> LedgerError {
    LedgerError(with_causes(&error))
}

#[async_trait]
impl Ledger for StoreLedger {
    async fn record(&self, attempt: &AttemptRef, events: Vec<NewEvent>) -> Result<(), LedgerError> {
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
        let CallEnded { spent, trouble, events } = call;
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
        Ok(())
    }
}
