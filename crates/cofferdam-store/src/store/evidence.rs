//! What an attempt leaves behind: events, seal, artifacts.

use cofferdam_core::{AttemptRef, Event, NewEvent, RunId, Seal};

use super::Store;
use crate::error::Error;
use crate::lease::Lease;
use crate::record::Artifact;

impl Store {
    /// Adds events of the lease's attempt in one transaction, numbered without gaps, and returns those that
    /// were not there yet. Once the attempt is over only `sandbox.*` events are taken.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`] if the lease's owner may no longer write.
    pub async fn append(&self, lease: &Lease, events: &[NewEvent]) -> Result<Vec<Event>, Error> {
        match self {
            Self::Sqlite(store) => store.append(lease, events).await,
            Self::Postgres(store) => store.append(lease, events).await,
        }
    }

    /// The run's events after this number, in order, at most `limit`.
    ///
    /// # Errors
    /// If the database fails or an event cannot be read.
    pub async fn events_after(&self, run: &RunId, seq: u64, limit: u32) -> Result<Vec<Event>, Error> {
        match self {
            Self::Sqlite(store) => store.events_after(run, seq, limit).await,
            Self::Postgres(store) => store.events_after(run, seq, limit).await,
        }
    }

    /// How many events the run has, which is also the number of the newest.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn event_count(&self, run: &RunId) -> Result<u64, Error> {
        match self {
            Self::Sqlite(store) => store.event_count(run).await,
            Self::Postgres(store) => store.event_count(run).await,
        }
    }

    /// The number of the last worker line of this attempt that was stored.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn last_worker_seq(&self, attempt: &AttemptRef) -> Result<Option<u64>, Error> {
        match self {
            Self::Sqlite(store) => store.last_worker_seq(attempt).await,
            Self::Postgres(store) => store.last_worker_seq(attempt).await,
        }
    }

    /// Keeps the seal that was measured around the attempt, together with the events that tell of it.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn record_seal(
        &self,
        lease: &Lease,
        seal: &Seal,
        events: &[NewEvent],
    ) -> Result<Vec<Event>, Error> {
        match self {
            Self::Sqlite(store) => store.record_seal(lease, seal, events).await,
            Self::Postgres(store) => store.record_seal(lease, seal, events).await,
        }
    }

    /// The files that the run's attempts have left.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn artifacts(&self, run: &RunId) -> Result<Vec<Artifact>, Error> {
        match self {
            Self::Sqlite(store) => store.artifacts(run).await,
            Self::Postgres(store) => store.artifacts(run).await,
        }
    }
}
