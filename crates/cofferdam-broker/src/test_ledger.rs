//! A ledger in memory, for the tests of what writes to one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cofferdam_core::{AttemptRef, NewEvent, RunId, Spent};

use crate::ledger::{CallBegun, CallEnded, CallId, Ledger, LedgerError};

/// Keeps events, after it has failed as often as it is told.
#[derive(Default)]
pub(crate) struct TestLedger {
    pub(crate) failures: AtomicUsize,
    pub(crate) events: Mutex<Vec<NewEvent>>,
}

#[async_trait]
impl Ledger for TestLedger {
    async fn record(&self, _: &AttemptRef, events: Vec<NewEvent>) -> Result<(), LedgerError> {
        let fewer = |left: usize| left.checked_sub(1);
        if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok() {
            return Err(LedgerError("not now".to_owned()));
        }
        self.events.lock().unwrap().extend(events);
        Ok(())
    }

    async fn spent(&self, _: &RunId) -> Result<Spent, LedgerError> {
        Ok(Spent::default())
    }

    async fn begin_call(&self, _: &AttemptRef, _: CallBegun) -> Result<CallId, LedgerError> {
        Ok(CallId(1))
    }

    async fn end_call(&self, _: &AttemptRef, _: CallId, _: CallEnded) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn budget_exceeded(&self, _: &AttemptRef, _: &str) -> Result<(), LedgerError> {
        Ok(())
    }
}
