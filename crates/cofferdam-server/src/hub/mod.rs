//! Live runs, watched once for all who read them.
//!
//! One task asks the store how far the watched runs are, reads what is new of each once, and keeps the newest of it as
//! it goes over the wire. A reader takes it from there; one that is further behind reads the store from its own number.
//! So a thousand readers of one run cost as much as one, and a slow reader costs nothing but its own place. What a run is
//! saying at this moment (`hints.rs`) goes beside that, and whoever misses a piece of it reads the event.

mod hints;
mod pump;
mod reader;
mod recent;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cofferdam_api::RunEnd;
use cofferdam_core::{Delta, NodeId, RunId};
use cofferdam_store::{Listens, Store};
use tokio::sync::{Notify, broadcast, watch};
use tokio::task::JoinHandle;

pub(crate) use self::reader::{News, Reader};
use self::recent::Recent;

/// Runs that somebody reads.
pub(crate) struct Hub {
    watched: Arc<Watched>,
    tasks: [JoinHandle<()>; 2],
}

/// What the pump and the readers share.
struct Watched {
    store: Store,
    runs: Mutex<HashMap<RunId, Weak<LiveRun>>>,
    /// Somebody reads a run that nobody read before.
    added: Notify,
}

/// One run that somebody reads.
struct LiveRun {
    recent: Mutex<Recent>,
    standing: watch::Sender<Standing>,
    /// What it is saying.
    deltas: broadcast::Sender<Delta>,
}

/// How far a run is known to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Standing {
    /// It was not looked at yet.
    #[default]
    Unknown,
    /// So far.
    At {
        /// The number of its newest event.
        last_seq: u64,
        /// How it ended, once all of its events are known.
        end: Option<RunEnd>,
    },
    /// It is not on record any more.
    Gone,
}

impl Standing {
    fn is_over(&self) -> bool {
        match self {
            Self::Unknown | Self::At { end: None, .. } => false,
            Self::At { end: Some(_), .. } | Self::Gone => true,
        }
    }
}

impl Hub {
    /// Must be called within a tokio runtime.
    pub(crate) fn start(store: Store, node: &NodeId) -> Self {
        let wakes = store.wakes(node, Listens::Reader);
        let watched = Arc::new(Watched { store, runs: Mutex::default(), added: Notify::new() });
        let hints = tokio::spawn(hints::hand_out(Arc::clone(&watched), wakes.hints()));
        let pump = tokio::spawn(pump::run(Arc::clone(&watched), wakes));
        Self { watched, tasks: [hints, pump] }
    }

    /// Reads a run that is on record, from the event after this number.
    pub(crate) fn read(&self, run: &RunId, after: u64) -> Reader {
        Reader::new(self.watched.store.clone(), run.clone(), self.watched.watch(run), after)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Watched {
    fn watch(&self, run: &RunId) -> Arc<LiveRun> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = runs.get(run).and_then(Weak::upgrade) {
            return live;
        }
        let live = Arc::new(LiveRun {
            recent: Mutex::default(),
            standing: watch::Sender::new(Standing::default()),
            deltas: broadcast::Sender::new(hints::MOST_DELTAS),
        });
        runs.insert(run.clone(), Arc::downgrade(&live));
        self.added.notify_one();
        live
    }

    /// A run, if somebody reads it.
    fn find(&self, run: &RunId) -> Option<Arc<LiveRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).get(run).and_then(Weak::upgrade)
    }

    /// The runs that somebody still reads and whose end is not known. Those that nobody reads are forgotten.
    fn live(&self) -> Vec<(RunId, Arc<LiveRun>)> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|_, live| live.strong_count() > 0);
        let live = runs.iter().filter_map(|(run, live)| Some((run.clone(), live.upgrade()?)));
        live.filter(|(_, live)| !live.standing.borrow().is_over()).collect()
    }
}

impl LiveRun {
    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
