//! What every handler works with.

use std::sync::Arc;

use cofferdam_core::Effective;
pub(crate) use cofferdam_operations::now_ms;
use cofferdam_operations::{Operations, RootLookup};
use cofferdam_store::Store;
use tokio::sync::Semaphore;

use crate::access::KeyCache;
use crate::artifacts::RunFiles;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::options::{Bounds, KeyRule, Options};
use crate::status::Status;

/// The service, as handlers see it. Cloning shares it.
#[derive(Clone)]
pub(crate) struct App {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    operations: Operations,
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
        let operations = Operations::new(
            options.store.clone(),
            Arc::clone(&options.settings),
            linked_roots(Arc::clone(&options.settings)),
        );
        let operations = match options.keys {
            KeyRule::Always => operations,
            KeyRule::NotOnLoopback => operations.open_on_loopback(),
        };
        let shared = Shared {
            operations,
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

    /// What somebody can do: handlers only translate to it.
    pub(crate) fn operations(&self) -> &Operations {
        &self.shared.operations
    }

    pub(crate) fn artifacts(&self) -> &dyn RunFiles {
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
}

/// Whether a root of the operator's that is a link leads above a path.
fn linked_roots(settings: Arc<Effective>) -> RootLookup {
    Arc::new(move |path| {
        let roots = settings.settings.service.allowed_roots.iter();
        roots.filter_map(|root| root.path().canonicalize().ok()).any(|root| path.starts_with(root))
    })
}
