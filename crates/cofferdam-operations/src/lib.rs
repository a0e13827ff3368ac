//! What people and programs may do, one file for each thing: the only place that decides it.
//!
//! Main type: [`Operations`]. Each of its functions takes an [`Actor`](cofferdam_core::Actor) and a raw input, and does the
//! same steps in the same order: authorise (by core's judge), validate, write the change and its audit entry in one
//! transaction, wake. Commands, HTTP handlers and our own roles only translate to it.
//!
//! This crate knows core and the store. It does not know HTTP, flags, sandboxes or processes; facts about paths and files come
//! through a trait that the caller implements.

mod asking;
mod audit;
mod authorise;
mod clock;
mod config;
mod dead_letters;
mod error;
mod keys;
mod nodes;
mod processes;
mod projects;
mod random;
mod runs;
mod settings;
mod specs;

use std::path::Path;
use std::sync::Arc;

use cofferdam_core::Effective;
use cofferdam_store::Store;

use config::InForce;

pub use asking::{Answered, CheckPlace};
pub use audit::AuditPage;
pub use clock::now_ms;
pub use config::{ConfigChange, ConfigChanged, NodeTrial};
pub use dead_letters::LetterPage;
pub use error::Error;
pub use keys::{KeyText, MadeKey, NotAKey};
pub use processes::{AskedService, Process, ProcessService, Started, Starting, Stopped, StoppedAll};
pub use random::random_bits;
pub use runs::{
    Accepted, Cancelled, EventPage, Judged, MOST_MESSAGE_CHARACTERS, MessagePage, NewAsk, NewRun, RunPage,
    SentMessage, Way,
};
pub use specs::{
    CancelledSpec, DecidedSpec, Decision, ExecutedSpec, LaunchedSpec, NewExecution, SpecEvent, SpecEventPage,
    SpecPage, SpecPosition, VersionPage, WrittenPhase,
};

/// Everything that somebody can do to one record. Cloning shares it.
#[derive(Clone)]
pub struct Operations {
    store: Store,
    settings: Arc<Effective>,
    in_force: InForce,
    is_below_linked_root: RootLookup,
    /// Whether callers of this machine need no key.
    is_open_on_loopback: bool,
}

/// Whether a root of `service.allowed_roots` that is itself a link leads above a path, whose own links were followed.
pub type RootLookup = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

impl Operations {
    /// Operations of a service on a record, judged by these settings with what is on record over them.
    #[must_use]
    pub fn new(store: Store, settings: Arc<Effective>, is_below_linked_root: RootLookup) -> Self {
        let in_force = InForce::Recorded(Arc::default());
        Self { store, settings, in_force, is_below_linked_root, is_open_on_loopback: false }
    }

    /// The same for a service whose callers on this machine need no key.
    #[must_use]
    pub fn open_on_loopback(self) -> Self {
        Self { is_open_on_loopback: true, ..self }
    }

    /// Operations for our own roles and for whoever sits at this machine, whom no setting of the service binds, on record or not.
    #[must_use]
    pub fn for_own_use(store: Store) -> Self {
        Self { in_force: InForce::Fixed, ..Self::new(store, Arc::default(), Arc::new(|_| false)) }
    }

    /// The same operations, judged by these settings.
    #[must_use]
    pub fn with_settings(self, settings: Arc<Effective>) -> Self {
        Self { settings, ..self }
    }
}
