//! Keeps a lease alive and listens for a cancel, beside the straight line.

use std::time::Duration;

use cofferdam_store::{Error, Lease, Store};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::hold::{Hold, LeaseClock};
use crate::lease_times::LEASE_MS;
use crate::node::{Node, now_ms};
use crate::progress::Cancel;

/// How often it is renewed: a few renewals may be late before it expires.
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// How soon it is tried again when that did not work.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How long a renewal may take: one that hangs must not hide that the lease runs out.
const RENEWS_WITHIN: Duration = Duration::from_secs(10);
/// How often a cancel is looked for, should its wake be lost.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// Runs as long as the attempt does.
pub(crate) struct Keeper {
    task: JoinHandle<()>,
    cancel: watch::Receiver<Cancel>,
    hold: watch::Receiver<Hold>,
}

impl Keeper {
    pub(crate) fn start(node: &Node, lease: &Lease, terminal: watch::Receiver<Cancel>) -> Self {
        let (cancel_sender, cancel) = watch::channel(*terminal.borrow());
        let (hold_sender, hold) = watch::channel(Hold::Ours);
        let is_shared = node.is_shared();
        let keeping = Keeping {
            store: node.impatient_store(),
            lease: lease.clone(),
            terminal,
            cancel: cancel_sender,
            hold: hold_sender,
            wakes: node.wakes.clone(),
            is_shared,
            clock: LeaseClock::renewed(now_ms(), is_shared),
            renew_at: Instant::now() + RENEW_EVERY,
        };
        Self { task: tokio::spawn(keeping.run()), cancel, hold }
    }

    /// What has been asked for, at the terminal or through the store.
    pub(crate) fn cancel(&self) -> watch::Receiver<Cancel> {
        self.cancel.clone()
    }

    /// Returns when the attempt is no longer ours, or may not be.
    pub(crate) async fn lost(&self) -> Hold {
        let mut hold = self.hold.clone();
        let lost = hold.wait_for(|hold| *hold != Hold::Ours).await.map(|hold| *hold);
        match lost {
            Ok(hold) => hold,
            // The keeper is gone with its attempt.
            Err(_) => std::future::pending().await,
        }
    }

    /// Whether the attempt is still ours.
    pub(crate) fn hold(&self) -> Hold {
        *self.hold.borrow()
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
    hold: watch::Sender<Hold>,
    wakes: watch::Receiver<u64>,
    is_shared: bool,
    clock: LeaseClock,
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
        if Instant::now() >= self.renew_at {
            self.renew().await;
        }
        let asked = self.store.cancel_requested(&self.lease.attempt().run);
        if let Ok(Ok(true)) = timeout(RENEWS_WITHIN, asked).await {
            self.raise(Cancel::Gracefully);
        }
    }

    async fn renew(&mut self) {
        let sent_at_ms = now_ms();
        let renewed = timeout(RENEWS_WITHIN, self.store.renew(&self.lease, sent_at_ms, LEASE_MS)).await;
        let hold = match renewed {
            Ok(Ok(())) => {
                self.clock = LeaseClock::renewed(sent_at_ms, self.is_shared);
                self.renew_at = Instant::now() + RENEW_EVERY;
                return;
            }
            Ok(Err(Error::StaleLease { .. } | Error::AlreadyFinal { .. })) => Hold::Taken,
            // Any other error, such as a busy database, is tried again before the lease expires.
            Ok(Err(_)) | Err(_) => self.clock.failed(now_ms()),
        };
        self.renew_at = Instant::now() + TRY_AGAIN;
        if hold != Hold::Ours {
            self.hold.send_replace(hold);
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
