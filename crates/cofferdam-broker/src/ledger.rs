//! Where the broker writes down what happens. It is behind a trait, because the broker does not know the
//! store.

use async_trait::async_trait;
use cofferdam_core::{AttemptRef, ModelTrouble, NewEvent, RunId, Spent};
use serde::{Deserialize, Serialize};

/// What the broker spends and decides, kept by somebody else.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// The broker begins to serve an attempt. What the ledger needs for it may be kept from now on.
    fn opened(&self, _attempt: &AttemptRef) {}

    /// The broker has stopped serving an attempt. Calls that were not settled in time may still end, and nothing else comes.
    fn closed(&self, _attempt: &AttemptRef) {}

    /// Adds events to the attempt's run. Events of an attempt that is over are dropped.
    ///
    /// # Errors
    /// [`LedgerError`] if they could not be stored.
    async fn record(&self, attempt: &AttemptRef, events: Vec<NewEvent>) -> Result<(), LedgerError>;

    /// What the run has spent so far, over all its attempts; a call that never ended counts as reserved.
    ///
    /// # Errors
    /// [`LedgerError`] if it is not known. Then nothing may be forwarded.
    async fn spent(&self, run: &RunId) -> Result<Spent, LedgerError>;

    /// Writes down a reservation. The call is forwarded only after this has returned.
    ///
    /// # Errors
    /// [`LedgerError`] if it could not be stored. Then the call is not forwarded.
    async fn begin_call(&self, attempt: &AttemptRef, call: CallBegun) -> Result<CallId, LedgerError>;

    /// Writes down what a call really cost, and how it ended.
    ///
    /// # Errors
    /// [`LedgerError`] if it could not be stored; the reservation stays then.
    async fn end_call(&self, attempt: &AttemptRef, id: CallId, call: CallEnded) -> Result<(), LedgerError>;

    /// Says that a budget was found spent, before the agent is told. The first time it is an event.
    ///
    /// # Errors
    /// [`LedgerError`] if it could not be stored.
    async fn budget_exceeded(&self, attempt: &AttemptRef, which: &str) -> Result<(), LedgerError>;
}

/// Names a model call in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallId(pub i64);

/// A call that is about to be forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallBegun {
    /// When.
    pub at_ms: u64,
    /// The model asked for.
    pub model: String,
    /// What is set aside for it; `calls` is 1.
    pub reserved: Spent,
}

/// A call that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEnded {
    /// What it cost; `calls` is 1.
    pub spent: Spent,
    /// How it failed, if it did. `None` means that the answer was whole, or that the agent did not wait for it.
    pub trouble: Option<ModelTrouble>,
    /// `model.usage` and `model.error` events of this call, stored with it.
    pub events: Vec<NewEvent>,
}

/// Why something could not be written down or read.
#[derive(Debug, thiserror::Error)]
#[error("the ledger failed: {0}")]
pub struct LedgerError(pub String);
