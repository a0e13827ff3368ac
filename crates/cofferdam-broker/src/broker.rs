//! The broker itself: which attempts it serves.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cofferdam_core::{AllowRule, AttemptRef};
use cofferdam_net::Dialer;
use tokio::sync::OnceCell;

use crate::attempt::Attempt;
use crate::grant::Grant;
use crate::ledger::{Ledger, LedgerError};
use crate::memory::Memory;
use crate::options::Options;

/// A handle to a broker; clones are the same broker. Its tasks end when the last handle is dropped.
#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    options: Arc<Options>,
    ledger: Arc<dyn Ledger>,
    dialer: Dialer,
    memory: Arc<Memory>,
    attempts: Mutex<HashMap<AttemptRef, Arc<Slot>>>,
}

/// The place of one attempt. Whoever opens it first fills it; the others wait for that one, and for no other
/// attempt.
#[derive(Default)]
struct Slot {
    attempt: OnceCell<Attempt>,
    /// Rules that came before the sockets did.
    early: Mutex<Option<Vec<AllowRule>>>,
}

/// Why an attempt cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A socket could not be made.
    #[error("failed to listen on {}", path.display())]
    Listen {
        /// Which.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// The repository's address is none that is served.
    #[error("the broker cannot serve the repository {url}: {reason}")]
    Git {
        /// Its address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What was spent so far is not known.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Broker {
    /// A broker that serves nobody yet.
    #[must_use]
    pub fn new(options: Options, ledger: Arc<dyn Ledger>) -> Self {
        let dialer = Dialer::new(&options.name_servers, options.bounds.connect_time);
        let memory = Memory::new(&options.bounds);
        let inner = Inner { options: Arc::new(options), ledger, dialer, memory, attempts: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Serves an attempt: when this returns, its sockets take connections. Opening it again changes nothing.
    ///
    /// # Errors
    /// [`OpenError`] if it cannot be served.
    pub async fn open(&self, grant: Grant) -> Result<(), OpenError> {
        let name = grant.attempt.clone();
        let slot = Arc::clone(self.attempts().entry(name.clone()).or_default());
        let Inner { options, ledger, dialer, memory, .. } = &*self.inner;
        let attempt = slot
            .attempt
            .get_or_try_init(|| {
                let memory = Arc::clone(memory);
                ledger.opened(&name);
                Attempt::open(grant, Arc::clone(options), Arc::clone(ledger), dialer.clone(), memory)
            })
            .await
            .inspect_err(|_| ledger.closed(&name))?;
        if let Some(rules) = slot.early().take() {
            attempt.allow(rules);
        }
        Ok(())
    }

    /// Lets an attempt connect to these as well as to what it was granted; the whole list of additions.
    pub fn allow(&self, attempt: &AttemptRef, rules: Vec<AllowRule>) {
        let Some(slot) = self.attempts().get(attempt).cloned() else { return };
        // The lock is held over the look, so that rules which come while the sockets are made are not lost.
        let mut early = slot.early();
        match slot.attempt.get() {
            Some(open) => open.allow(rules),
            None => *early = Some(rules),
        }
    }

    /// Stops listening for all attempts, so that another broker can take their new connections. What is in flight goes on;
    /// an attempt is closed when it [is idle](Self::is_idle).
    pub fn retire(&self) {
        for slot in self.attempts().values() {
            if let Some(open) = slot.attempt.get() {
                open.retire();
            }
        }
    }

    /// Whether an attempt has no connection: nothing of it is cut by closing it.
    #[must_use]
    pub fn is_idle(&self, attempt: &AttemptRef) -> bool {
        let slot = self.attempts().get(attempt).cloned();
        slot.is_none_or(|slot| slot.attempt.get().is_none_or(Attempt::is_idle))
    }

    /// Stops serving an attempt: its connections are closed, what is in flight is settled, and its events are
    /// written.
    pub async fn close(&self, attempt: &AttemptRef) {
        let slot = self.attempts().remove(attempt);
        if let Some(open) = slot.as_ref().and_then(|slot| slot.attempt.get()) {
            open.close().await;
        }
        self.inner.ledger.closed(attempt);
    }

    fn attempts(&self) -> MutexGuard<'_, HashMap<AttemptRef, Arc<Slot>>> {
        self.inner.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn early(&self) -> MutexGuard<'_, Option<Vec<AllowRule>>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
