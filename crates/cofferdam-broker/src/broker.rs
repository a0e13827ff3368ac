//! The broker itself: which attempts it serves.

use std::sync::Arc;

use cofferdam_core::{AllowRule, AttemptRef};

use crate::grant::Grant;
use crate::ledger::Ledger;
use crate::options::Options;

/// A handle to a broker; clones are the same broker. Its tasks end when the last handle is dropped.
#[derive(Clone)]
pub struct Broker {
    _options: Arc<Options>,
    _ledger: Arc<dyn Ledger>,
}

/// Why an attempt cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A socket could not be made.
    #[error("failed to listen on {}", path.display())]
    Listen {
        /// Which.
        path: std::path::PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// What was spent so far is not known.
    #[error(transparent)]
    Ledger(#[from] crate::ledger::LedgerError),
}

impl Broker {
    /// A broker that serves nobody yet.
    #[must_use]
    pub fn new(options: Options, ledger: Arc<dyn Ledger>) -> Self {
        Self { _options: Arc::new(options), _ledger: ledger }
    }

    /// Serves an attempt: when this returns, its sockets take connections. Opening it again changes nothing.
    ///
    /// # Errors
    /// [`OpenError`] if it cannot be served.
    #[expect(clippy::unused_async, reason = "the listeners are not written yet")]
    pub async fn open(&self, _grant: Grant) -> Result<(), OpenError> {
        Ok(())
    }

    /// Lets an attempt connect to these as well as to what it was granted; the whole list of additions.
    pub fn allow(&self, _attempt: &AttemptRef, _rules: Vec<AllowRule>) {}

    /// Stops serving an attempt: its connections are closed, what is in flight is settled, and its events are
    /// written.
    #[expect(clippy::unused_async, reason = "the listeners are not written yet")]
    pub async fn close(&self, _attempt: &AttemptRef) {}
}
