//! The broker that serves a node's attempts: in the same process, or one of its own.

use std::path::Path;
use std::time::Duration;

use cofferdam_broker::{Broker, OpenError};
use cofferdam_core::{AllowRule, AttemptRef, Event, gateway};
use cofferdam_store::Store;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, timeout};

use super::arrivals::Arrivals;
use super::grant::{Granted, Publishing};
use super::ledger::StoreLedger;
use super::process::BrokerProcess;

/// How long a broker of its own may take to serve a new attempt. It is started with the node.
const OPENS_WITHIN: Duration = Duration::from_secs(20);
/// How long calls may take to be written down once their agent is gone.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often a socket is tried although nothing was seen to arrive.
const TRY_EVERY: Duration = Duration::from_millis(500);

/// Who serves the attempts of a node.
#[derive(Clone)]
pub enum BrokerAccess {
    /// A broker in this process, for runs that end with it anyway.
    Own {
        /// The broker.
        broker: Broker,
        /// What it writes.
        ledger: StoreLedger,
    },
    /// A broker that outlives this process and finds the attempts in the store: [`super::BrokerService`].
    Apart(BrokerProcess),
    /// The same, kept by whoever keeps this process too.
    Beside,
}

/// Why an attempt has no way out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccessError {
    #[error("the broker cannot serve the sandbox")]
    Open(#[from] OpenError),
    #[error("the broker does not answer (waited {} s)", OPENS_WITHIN.as_secs())]
    Silent,
    #[error("the way to the broker could not be made")]
    Folder(#[from] std::io::Error),
    #[error("the run's allow-list could not be read")]
    Store(#[from] cofferdam_store::Error),
}

impl BrokerAccess {
    /// Serves an attempt. When this returns, its sockets take connections.
    pub(crate) async fn open(&self, store: &Store, granted: &Granted) -> Result<(), AccessError> {
        match self {
            Self::Own { broker, .. } => {
                let attempt = granted.grant.attempt.clone();
                broker.open(granted.grant.clone()).await?;
                broker.allow(&attempt, store.allowances(&attempt.run).await?);
                Ok(())
            }
            Self::Apart(process) => {
                process.ensure().await;
                store.wake();
                answers(&granted.folder).await
            }
            Self::Beside => {
                store.wake();
                answers(&granted.folder).await
            }
        }
    }

    /// Serves the step that publishes an attempt's changes, instead of its agent, which is gone. When this returns, its
    /// socket takes connections.
    pub(crate) async fn open_publishing(
        &self,
        store: &Store,
        publishing: &Publishing,
    ) -> Result<(), AccessError> {
        match self {
            Self::Own { broker, .. } => {
                let attempt = &publishing.grant.attempt;
                broker.close(attempt).await;
                broker.open(publishing.grant.clone()).await?;
                broker.allow(attempt, listed(store, publishing).await?);
                Ok(())
            }
            Self::Apart(process) => {
                process.ensure().await;
                store.wake();
                answers(&publishing.grant.folder).await
            }
            Self::Beside => {
                store.wake();
                answers(&publishing.grant.folder).await
            }
        }
    }

    /// Goes on serving an attempt that was open when a former process of this node died.
    pub(crate) async fn resume(&self) {
        match self {
            // Its broker died with its process, and its agent too.
            Self::Own { .. } | Self::Beside => {}
            Self::Apart(process) => process.ensure().await,
        }
    }

    /// Takes over what was added to the run's allow-list meanwhile.
    pub(crate) async fn refresh(&self, store: &Store, attempt: &AttemptRef) {
        if let Self::Own { broker, .. } = self
            && let Ok(rules) = store.allowances(&attempt.run).await
        {
            broker.allow(attempt, rules);
        }
    }

    /// Stops serving an attempt whose agent is gone. When this returns, its calls are written down, or it is
    /// not known what they cost and they count as reserved.
    pub(crate) async fn close(&self, store: &Store, attempt: &AttemptRef) {
        if let Self::Own { broker, .. } = self {
            return broker.close(attempt).await;
        }
        let give_up_at = Instant::now() + SETTLES_WITHIN;
        while Instant::now() < give_up_at && store.calls_in_flight(attempt).await.is_ok_and(|calls| calls > 0)
        {
            sleep(LOOK_EVERY).await;
        }
    }

    /// What the broker writes from now on, where it is in this process.
    pub(crate) fn listen(&self) -> Option<broadcast::Receiver<(AttemptRef, Event)>> {
        match self {
            Self::Own { ledger, .. } => Some(ledger.listen()),
            Self::Apart(_) | Self::Beside => None,
        }
    }
}

/// Everything that a repository of this run may be at.
pub(super) async fn listed(
    store: &Store,
    publishing: &Publishing,
) -> Result<Vec<AllowRule>, cofferdam_store::Error> {
    let added = store.allowances(&publishing.grant.attempt.run).await?;
    Ok(publishing.listed.iter().cloned().chain(added).collect())
}

async fn answers(folder: &Path) -> Result<(), AccessError> {
    // Before the first try, so that nothing arrives unseen.
    let mut arrivals = Arrivals::in_folder(folder).ok();
    let looking = async {
        while cofferdam_broker::connect(folder, gateway::SOCKET).await.is_err() {
            match &mut arrivals {
                Some(arrivals) => drop(timeout(TRY_EVERY, arrivals.next()).await),
                None => sleep(LOOK_EVERY).await,
            }
        }
    };
    timeout(OPENS_WITHIN, looking).await.map_err(|_| AccessError::Silent)
}
