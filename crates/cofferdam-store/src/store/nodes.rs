//! The nodes that execute runs, and how they wake each other.

use cofferdam_core::NodeId;

use super::Store;
use crate::error::Error;
use crate::node_record::NodeRecord;
use crate::wake::{Listens, Wakes, wake_all, wake_readers};

impl Store {
    /// Tells everybody who waits that there may be something to do. A hint, never the data: it never waits, and whoever
    /// misses it polls.
    pub fn wake(&self) {
        match self {
            Self::Sqlite(store) => drop(wake_all(store.wake_folder())),
            Self::Postgres(store) => store.wake(),
        }
    }

    /// Tells readers that a run has new events: nothing that anybody has to act on.
    pub fn wake_readers(&self) {
        match self {
            Self::Sqlite(store) => drop(wake_readers(store.wake_folder())),
            Self::Postgres(store) => store.wake_readers(),
        }
    }

    /// Listens for wakes under a name that nobody else has, until the returned value is dropped. Must be called within a
    /// tokio runtime. Where no wake can come, the count never changes.
    #[must_use]
    pub fn wakes(&self, name: &NodeId, listens: Listens) -> Wakes {
        match self {
            Self::Sqlite(store) => Wakes::of_folder(store.wake_folder(), name, listens),
            Self::Postgres(store) => store.wakes(listens),
        }
    }

    /// Writes down what a node tells of itself, over what it told before.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn report_node(&self, node: &NodeRecord) -> Result<(), Error> {
        match self {
            Self::Sqlite(store) => store.report_node(node).await,
            Self::Postgres(store) => store.report_node(node).await,
        }
    }

    /// Forgets a node.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn remove_node(&self, node: &NodeId) -> Result<(), Error> {
        match self {
            Self::Sqlite(store) => store.remove_node(node).await,
            Self::Postgres(store) => store.remove_node(node).await,
        }
    }

    /// Every node that has told of itself and was not forgotten.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn nodes(&self) -> Result<Vec<NodeRecord>, Error> {
        match self {
            Self::Sqlite(store) => store.nodes().await,
            Self::Postgres(store) => store.nodes().await,
        }
    }
}
