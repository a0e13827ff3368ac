//! What every handler works with.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cofferdam_core::{Effective, PlaceId, RunId};
use cofferdam_store::{NewAudit, Store};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::access::{Caller, KeyCache};
use crate::artifacts::ArtifactReader;
use crate::errors::ApiError;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::options::{Bounds, Options};
use crate::random::random_bits;
use crate::status::Status;

/// The service, as handlers see it. Cloning shares it.
#[derive(Clone)]
pub(crate) struct App {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    keys: KeyCache,
    hub: Hub,
    status: Status,
    metrics: Arc<Metrics>,
    /// How many calls may wait for the end of a run.
    waiting: Arc<Semaphore>,
    /// How many streams may be open.
    streams: Arc<Semaphore>,
}

impl App {
    /// Must be called within a tokio runtime.
    pub(crate) fn new(options: Options) -> Self {
        let metrics = Arc::new(Metrics::default());
        let hub = Hub::start(options.store.clone(), &options.node);
        let (waiting, streams) = (options.bounds.waiting, options.bounds.streams);
        let shared = Shared {
            keys: KeyCache::default(),
            hub,
            status: Status::default(),
            metrics,
            waiting: Arc::new(Semaphore::new(waiting)),
            streams: Arc::new(Semaphore::new(streams)),
            options,
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.shared.options.store
    }

    pub(crate) fn options(&self) -> &Options {
        &self.shared.options
    }

    pub(crate) fn settings(&self) -> &Effective {
        &self.shared.options.settings
    }

    pub(crate) fn place(&self) -> &PlaceId {
        &self.shared.options.place
    }

    pub(crate) fn artifacts(&self) -> &dyn ArtifactReader {
        self.shared.options.artifacts.as_ref()
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.shared.options.bounds
    }

    pub(crate) fn keys(&self) -> &KeyCache {
        &self.shared.keys
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.shared.hub
    }

    pub(crate) fn status(&self) -> &Status {
        &self.shared.status
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    pub(crate) fn waiting(&self) -> &Arc<Semaphore> {
        &self.shared.waiting
    }

    pub(crate) fn streams(&self) -> &Arc<Semaphore> {
        &self.shared.streams
    }

    /// Writes down who is about to change what. The change is made afterwards, so that there is none without its record.
    pub(crate) async fn audit(
        &self,
        caller: &Caller,
        action: &str,
        subject: &str,
        data: Value,
    ) -> Result<(), ApiError> {
        let change = NewAudit {
            at_ms: now_ms(),
            actor: caller.actor(),
            action: action.to_owned(),
            subject: subject.to_owned(),
            data,
        };
        Ok(self.store().record_audit(&change).await?)
    }
}

/// Milliseconds since the epoch.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A new run's name.
pub(crate) fn new_run_id() -> RunId {
    RunId::new(now_ms(), random_bits())
}
