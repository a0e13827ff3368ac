//! Keeps a lease alive and listens for a cancel, beside the straight line.

use std::time::Duration;

use cofferdam_store::{Lease, Store};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::stop::ExecuteError;
use crate::attached::Cancel;
use crate::node::{Node, now_ms};

/// How long a lease is valid.
pub(crate) const LEASE_MS: u64 = 30_000;
/// How often it is renewed: a few renewals may be late before it expires.
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// How often a cancel is looked for, should its wake be lost.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// Runs as long as the attempt does.
pub(crate) struct Keeper {
    task: JoinHandle<()>,
    cancel: watch::Receiver<Cancel>,
    lost: watch::Receiver<bool>,
}

impl Keeper {
    pub(crate) fn start(node: &Node, lease: &Lease, terminal: watch::Receiver<Cancel>) -> Self {
        let (cancel_sender, cancel) = watch::channel(*terminal.borrow());
        let (lost_sender, lost) = watch::channel(false);
        let keeping = Keeping {
            store: node.store.clone(),
            lease: lease.clone(),
            terminal,
            cancel: cancel_sender,
            lost: lost_sender,
            wakes: node.wakes.clone(),
            renew_at: Instant::now() + RENEW_EVERY,
        };
        Self { task: tokio::spawn(keeping.run()), cancel, lost }
    }

    /// What has been asked for: at the terminal, through the store, or because the lease is lost.
    pub(crate) fn cancel(&self) -> watch::Receiver<Cancel> {
        self.cancel.clone()
    }

    pub(crate) fn still_ours(&self) -> Result<(), ExecuteError> {
        if *self.lost.borrow() { Err(ExecuteError::LeaseLost) } else { Ok(()) }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Keeping {
    store: Store,
    lease: Lease,
    terminal: watch::Receiver<Cancel>,
    cancel: watch::Sender<Cancel>,
    lost: watch::Sender<bool>,
    wakes: watch::Receiver<u64>,
    renew_at: Instant,
}

impl Keeping {
    async fn run(mut self) {
        let mut terminal_open = true;
        let mut wakes_open = true;
        loop {
            tokio::select! {
                changed = self.terminal.changed(), if terminal_open => terminal_open = changed.is_ok(),
                changed = self.wakes.changed(), if wakes_open => wakes_open = changed.is_ok(),
                () = tokio::time::sleep(POLL_EVERY) => {}
            }
            self.look().await;
        }
    }

    async fn look(&mut self) {
        let asked = *self.terminal.borrow();
        self.raise(asked);
        if self.store.cancel_requested(&self.lease.attempt().run).await.unwrap_or(false) {
            self.raise(Cancel::Gracefully);
        }
        if Instant::now() < self.renew_at {
            return;
        }
        self.renew_at = Instant::now() + RENEW_EVERY;
        let renewed = self.store.renew(&self.lease, now_ms(), LEASE_MS).await;
        // Somebody else has the attempt now, and with it the sandbox: it is not ours to end. Any other error,
        // such as a busy database, is tried again before the lease expires.
        if matches!(renewed, Err(cofferdam_store::Error::StaleLease { .. })) {
            self.lost.send_replace(true);
        }
    }

    fn raise(&self, to: Cancel) {
        self.cancel.send_if_modified(|now| {
            let raise = to > *now;
            if raise {
                *now = to;
            }
            raise
        });
    }
}
