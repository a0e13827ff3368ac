//! A broker in a process of its own, beside a dispatcher: a restart of either cuts nothing of the other.
//!
//! It learns from the store which attempts its nodes have, so nobody has to tell it again after its own restart.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::time::Duration;

use cofferdam_broker::{Broker, OpenError};
use cofferdam_core::{
    AllowRule, AttemptRef, EventType, NewEvent, NodeId, NodeName, SandboxId, gateway, with_causes,
};
use cofferdam_operations::now_ms;
use cofferdam_store::{Listens, Store};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::access::listed;
use super::grant::{Publishing, folder, granted, publishing, publishing_folder};
use super::hand_over::Mark;
use crate::home::Home;
use crate::node_lock::is_alive;

/// How often the store is looked at, should a wake be lost.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long it stays without a dispatcher and without an attempt: a dispatcher that is being restarted comes back.
const LINGER: Duration = Duration::from_secs(3);
/// The longest pause between two looks at a record that cannot be read.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a broker that hands over looks whether calls have ended, and whether attempts have.
const LOOK_FOR_IDLE: Duration = Duration::from_millis(50);
const LOOK_FOR_ENDS: Duration = Duration::from_secs(1);

/// Who keeps a broker running, and whose attempts it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeper {
    /// One node, which starts it when it is needed: it ends by itself when nobody needs it.
    Node(NodeId),
    /// The service of this name, which tells it when to end: it serves every node of that service.
    Supervisor(NodeName),
}

/// A broker that serves the attempts of its keeper's nodes.
pub struct BrokerService {
    /// The record of runs.
    pub store: Store,
    /// The state folder.
    pub home: Home,
    /// Its own name, for wakes.
    pub own: NodeId,
    /// The broker.
    pub broker: Broker,
    /// Who keeps it running, and whose attempts it serves.
    pub keeper: Keeper,
    /// Held as long as it listens: one broker of a keeper does.
    pub lock: File,
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

/// A broker that listens no more, with what is still in flight.
pub struct Retired {
    store: Store,
    broker: Broker,
    marked: Vec<(AttemptRef, Option<Mark>)>,
}

impl Retired {
    /// Finishes what is in flight. An attempt that is over has nobody who would hear the rest.
    pub async fn finish(self) {
        let Self { store, broker, mut marked } = self;
        let mut look_at = Instant::now() + LOOK_FOR_ENDS;
        loop {
            let mut over = BTreeSet::new();
            if look_at <= Instant::now() {
                look_at = Instant::now() + LOOK_FOR_ENDS;
                over = ended(&store, marked.iter().map(|(attempt, _)| attempt)).await;
            }
            let mut left = Vec::new();
            for (attempt, mark) in marked {
                if broker.is_idle(&attempt) || over.contains(&SandboxId::of(&attempt)) {
                    broker.close(&attempt).await;
                    mark.into_iter().for_each(Mark::remove);
                } else {
                    left.push((attempt, mark));
                }
            }
            if left.is_empty() {
                return;
            }
            marked = left;
            sleep(LOOK_FOR_IDLE).await;
        }
    }
}

/// Those of the attempts that are over.
async fn ended(store: &Store, attempts: impl Iterator<Item = &AttemptRef>) -> BTreeSet<SandboxId> {
    let Ok(live) = store.live_runs().await else { return BTreeSet::new() };
    let live: BTreeSet<SandboxId> = live.iter().map(|run| SandboxId::of(&run.attempt)).collect();
    attempts.map(SandboxId::of).filter(|id| !live.contains(id)).collect()
}

impl BrokerService {
    /// Serves until it is told to stop, or nobody needs it any more. When this returns, a successor can listen, and what is
    /// in flight is still to be [finished](Retired::finish).
    ///
    /// # Errors
    /// [`ServiceError`] if it cannot go on. Whoever started it starts it again.
    pub async fn run(self, mut stop: watch::Receiver<bool>) -> Result<Retired, ServiceError> {
        let wakes = self.store.wakes(&self.own, Listens::Worker);
        let mut woken = wakes.count();
        // One that was killed before us has left its socket, which whoever wakes removes.
        self.store.wake();
        let mut served: BTreeMap<SandboxId, Served> = BTreeMap::new();
        let mut idle_since = None;
        let mut pause = LOOK_EVERY;
        loop {
            pause = match self.look(&mut served).await {
                Ok(()) => LOOK_EVERY,
                // Ending would cut every stream, and a database that is away comes back.
                Err(ServiceError::Store(error)) if error.is_transient() => {
                    tracing::warn!(error = %with_causes(&error), "the record cannot be read; trying again");
                    (pause * 2).min(LONGEST_PAUSE)
                }
                Err(error) => return Err(error),
            };
            if self.is_needed(&served) {
                idle_since = None;
            } else if idle_since.get_or_insert_with(Instant::now).elapsed() >= LINGER {
                break;
            }
            tokio::select! {
                _ = woken.changed() => {}
                () = sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
        Ok(self.retire(served))
    }

    fn is_needed(&self, served: &BTreeMap<SandboxId, Served>) -> bool {
        match &self.keeper {
            Keeper::Supervisor(_) => true,
            Keeper::Node(node) => !served.is_empty() || is_alive(&self.home, node),
        }
    }

    /// Whose attempts it serves. Read each time: a service may have started another node.
    fn nodes(&self) -> io::Result<BTreeSet<NodeId>> {
        match &self.keeper {
            Keeper::Node(node) => Ok([node.clone()].into()),
            Keeper::Supervisor(service) => self.home.nodes_of(service),
        }
    }

    /// Lets a successor listen.
    fn retire(self, served: BTreeMap<SandboxId, Served>) -> Retired {
        let mark = |one: Served| {
            let mark = Mark::set(&self.home, &one.attempt);
            (one.attempt, mark.inspect_err(|error| tracing::warn!(%error, "a hand-over has no mark")).ok())
        };
        let marked = served.into_values().map(mark).collect();
        self.broker.retire();
        // The successor waits for the lock, which ends here.
        Retired { store: self.store, broker: self.broker, marked }
    }

    async fn look(&self, served: &mut BTreeMap<SandboxId, Served>) -> Result<(), ServiceError> {
        let live = self.store.live_runs().await?;
        // After the runs: a node is there before it has any.
        let nodes = self.nodes()?;
        let ours: BTreeMap<SandboxId, AttemptRef> = live
            .into_iter()
            .filter(|run| nodes.contains(&run.node))
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
            Mark::was_left(&self.home, &attempt);
            self.tell_interrupted(&attempt).await?;
        }
        let mut one = Served { attempt, allowed: Vec::new(), publishing: None };
        self.refresh(&mut one).await?;
        Ok(Some(one))
    }

    async fn tell_interrupted(&self, attempt: &AttemptRef) -> Result<(), ServiceError> {
        let data = json!({ "reason": "the broker was started again; calls in flight were cut" });
        let event = NewEvent::new(now_ms(), EventType::EgressInterrupted, data);
        self.store.record_egress(attempt, &[event]).await?;
        Ok(())
    }

    async fn refresh(&self, one: &mut Served) -> Result<(), ServiceError> {
        if Mark::was_left(&self.home, &one.attempt) {
            self.tell_interrupted(&one.attempt).await?;
        }
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
