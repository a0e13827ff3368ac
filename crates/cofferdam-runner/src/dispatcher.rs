//! Claims runs and executes them, as many at once as the node has room for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::RunId;
use cofferdam_store::{Claimed, LiveRun};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::attached::{Cancel, Progress};
use crate::execute::{Attempt, Entry, ExecuteError, LEASE_MS, Retries, execute};
use crate::node::{Node, now_ms};
use crate::{recovery, redaction};

/// How often the queue is looked at, should a wake be lost.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// How often leftovers are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Executes detached runs until it is told to stop. Stopping leaves the sandboxes alone: the next start
/// under the same name adopts them.
pub struct Dispatcher {
    node: Arc<Node>,
    capacity: usize,
    executing: JoinSet<RunId>,
    held: BTreeSet<RunId>,
}

impl Dispatcher {
    /// A dispatcher that executes at most `capacity` runs at once.
    #[must_use]
    pub fn new(node: Arc<Node>, capacity: usize) -> Self {
        Self { node, capacity, executing: JoinSet::new(), held: BTreeSet::new() }
    }

    /// Adopts what a former self has left, then claims and executes until `stop` is true.
    ///
    /// # Errors
    /// [`ExecuteError`] if the record cannot be read at all.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), ExecuteError> {
        let mut wakes = self.node.wakes.clone();
        let mut wakes_open = true;
        self.sweep().await?;
        let mut sweeps = tokio::time::interval(SWEEP_EVERY);
        sweeps.tick().await;
        loop {
            self.fill().await?;
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
                Some(ended) = self.executing.join_next() => self.forget(ended),
                _ = sweeps.tick() => self.sweep().await?,
                changed = wakes.changed(), if wakes_open => wakes_open = changed.is_ok(),
                () = tokio::time::sleep(POLL_EVERY) => {}
            }
        }
    }

    fn forget(&mut self, ended: Result<RunId, tokio::task::JoinError>) {
        match ended {
            Ok(run) => {
                self.held.remove(&run);
            }
            Err(panic) => tracing::error!(%panic, "an attempt ended in a defect of ours"),
        }
    }

    async fn fill(&mut self) -> Result<(), ExecuteError> {
        while self.executing.len() < self.capacity {
            let node = &self.node;
            let claimed = node.store.claim(&node.owner(), now_ms(), LEASE_MS, &node.claim_rules()).await?;
            let Some(claimed) = claimed else {
                break;
            };
            self.start(claimed, Entry::Claimed);
        }
        Ok(())
    }

    async fn sweep(&mut self) -> Result<(), ExecuteError> {
        for orphan in recovery::orphans(&self.node).await? {
            if !self.held.contains(&orphan.attempt.run)
                && let Some(claimed) = self.adopt(&orphan).await?
            {
                self.start(claimed, Entry::Adopted);
            }
        }
        recovery::sweep(&self.node).await?;
        Ok(())
    }

    async fn adopt(&self, orphan: &LiveRun) -> Result<Option<Claimed>, ExecuteError> {
        let (node, run) = (&self.node, &orphan.attempt.run);
        let adopted = if orphan.node == node.id {
            node.store.adopt(&node.id, run, now_ms(), LEASE_MS).await?
        } else {
            node.store.adopt_for_recovery(run, orphan.token, &node.owner(), now_ms(), LEASE_MS).await?
        };
        Ok(adopted)
    }

    fn start(&mut self, claimed: Claimed, entry: Entry) {
        let node = Arc::clone(&self.node);
        let run = claimed.attempt.run.clone();
        self.held.insert(run.clone());
        self.executing.spawn(async move {
            let (_open, cancel) = watch::channel(Cancel::No);
            let mut nobody = |_: Progress| {};
            let retries = Retries::AsAsked;
            let attempt = Attempt {
                node: &node,
                redactor: redaction::redactor_of(&node, &claimed),
                claimed,
                entry,
                retries,
                watch: &mut nobody,
                cancel,
                held: Vec::new(),
            };
            if let Err(error) = execute(attempt).await {
                tracing::warn!(run.id = %run, %error, "an attempt was given up");
            }
            run
        });
    }
}
