//! A broker in a process of its own, beside a dispatcher: a restart of either cuts nothing of the other.
//!
//! It learns from the store which attempts its node has, so nobody has to tell it again after its own restart.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use cofferdam_broker::{Broker, OpenError};
use cofferdam_core::{AllowRule, AttemptRef, EventType, NewEvent, NodeId, SandboxId, gateway};
use cofferdam_store::Store;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use super::access::listed;
use super::grant::{Publishing, folder, granted, publishing, publishing_folder};
use crate::home::Home;
use crate::node::{is_alive, now_ms};

/// How often the store is looked at, should a wake be lost.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long it stays without a dispatcher and without an attempt: a dispatcher that is being restarted comes back.
const LINGER: Duration = Duration::from_secs(3);

/// A broker that serves the attempts of one node.
pub struct BrokerService {
    /// The record of runs.
    pub store: Store,
    /// The state folder.
    pub home: Home,
    /// Whose attempts it serves.
    pub node: NodeId,
    /// Its own name, for wakes.
    pub own: NodeId,
    /// The broker.
    pub broker: Broker,
}

/// Why the service ended.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The record cannot be read.
    #[error("the broker cannot read the record of runs")]
    Store(#[from] cofferdam_store::Error),
    /// The state folder cannot be used.
    #[error("the broker cannot use the state folder")]
    Home(#[from] io::Error),
}

/// What is served.
struct Served {
    attempt: AttemptRef,
    allowed: Vec<AllowRule>,
    /// Set once the agent is gone and its changes are to be published.
    publishing: Option<Publishing>,
}

impl BrokerService {
    /// Serves until it is told to stop, or nobody needs it any more.
    ///
    /// # Errors
    /// [`ServiceError`] if it cannot go on. Whoever started it starts it again.
    pub async fn run(self, mut stop: watch::Receiver<bool>) -> Result<(), ServiceError> {
        let wakes = self.store.wakes(&self.own);
        let mut woken = wakes.count();
        let mut served: BTreeMap<SandboxId, Served> = BTreeMap::new();
        let mut idle_since = None;
        loop {
            self.look(&mut served).await?;
            if served.is_empty() && !is_alive(&self.home, &self.node) {
                let since = *idle_since.get_or_insert_with(tokio::time::Instant::now);
                if since.elapsed() >= LINGER {
                    return Ok(());
                }
            } else {
                idle_since = None;
            }
            tokio::select! {
                _ = woken.changed() => {}
                () = sleep(LOOK_EVERY) => {}
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
            }
        }
    }

    async fn look(&self, served: &mut BTreeMap<SandboxId, Served>) -> Result<(), ServiceError> {
        let live = self.store.live_runs().await?;
        let ours: BTreeMap<SandboxId, AttemptRef> = live
            .into_iter()
            .filter(|run| run.node == self.node)
            .map(|run| (SandboxId::of(&run.attempt), run.attempt))
            .collect();
        let over: Vec<SandboxId> = served.keys().filter(|id| !ours.contains_key(*id)).cloned().collect();
        for id in over {
            if let Some(one) = served.remove(&id) {
                self.broker.close(&one.attempt).await;
            }
        }
        for (id, attempt) in ours {
            match served.get_mut(&id) {
                Some(one) if self.is_reachable(one) => {
                    self.refresh(one).await?;
                    continue;
                }
                // The runner has made the workspace anew, as a copy, and the sockets went with the first; or the agent
                // is gone, and what it was granted goes before anything else is.
                Some(one) => {
                    self.broker.close(&one.attempt).await;
                    served.remove(&id);
                }
                None => {}
            }
            if let Some(one) = self.open(attempt).await? {
                served.insert(id, one);
            }
        }
        Ok(())
    }

    /// Whether the sockets are still where whoever needs them now looks for them.
    fn is_reachable(&self, one: &Served) -> bool {
        let publishing = publishing_folder(&self.home, &one.attempt);
        match &one.publishing {
            Some(_) => publishing.join(gateway::SOCKET).exists(),
            None => !publishing.is_dir() && folder(&self.home, &one.attempt).join(gateway::SOCKET).exists(),
        }
    }

    /// Serves the step that publishes an attempt's changes. `None` if there is none.
    async fn open_publishing(&self, attempt: &AttemptRef) -> Result<Option<Served>, ServiceError> {
        if !publishing_folder(&self.home, attempt).is_dir() {
            return Ok(None);
        }
        let record = self.store.run(&attempt.run).await?;
        let Some(publishing) = publishing(&self.home, attempt, &record.request) else { return Ok(None) };
        if let Err(error) = self.broker.open(publishing.grant.clone()).await {
            tracing::warn!(run.id = %attempt.run, %error, "an attempt's changes cannot be published");
            return Ok(None);
        }
        let mut one = Served { attempt: attempt.clone(), allowed: Vec::new(), publishing: Some(publishing) };
        self.refresh(&mut one).await?;
        Ok(Some(one))
    }

    /// `None` if the attempt has no way out, or none yet.
    async fn open(&self, attempt: AttemptRef) -> Result<Option<Served>, ServiceError> {
        if let Some(one) = self.open_publishing(&attempt).await? {
            return Ok(Some(one));
        }
        // Made by the runner, once the workspace is there.
        let folder = folder(&self.home, &attempt);
        if !folder.is_dir() {
            return Ok(None);
        }
        // A broker that closes an attempt takes its sockets away; one that was killed leaves them.
        let was_served = folder.join(gateway::SOCKET).exists();
        let record = self.store.run(&attempt.run).await?;
        let Some(granted) = granted(&self.home, &attempt, &record.request, None)? else { return Ok(None) };
        match self.broker.open(granted.grant).await {
            Ok(()) => {}
            Err(error @ (OpenError::Listen { .. } | OpenError::Git { .. } | OpenError::Ledger(_))) => {
                tracing::warn!(run.id = %attempt.run, %error, "an attempt cannot be served");
                return Ok(None);
            }
        }
        if was_served {
            let data = json!({ "reason": "the broker was started again; calls in flight were cut" });
            let event = NewEvent::new(now_ms(), EventType::EgressInterrupted, data);
            self.store.record_egress(&attempt, &[event]).await?;
        }
        let mut one = Served { attempt, allowed: Vec::new(), publishing: None };
        self.refresh(&mut one).await?;
        Ok(Some(one))
    }

    async fn refresh(&self, one: &mut Served) -> Result<(), ServiceError> {
        let allowed = match &one.publishing {
            Some(publishing) => listed(&self.store, publishing).await?,
            None => self.store.allowances(&one.attempt.run).await?,
        };
        if allowed != one.allowed {
            self.broker.allow(&one.attempt, allowed.clone());
            one.allowed = allowed;
        }
        Ok(())
    }
}
