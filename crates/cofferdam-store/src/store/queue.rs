//! Accepting, claiming and cancelling runs.

use cofferdam_core::{RunId, RunRequest};

use super::Store;
use crate::claim_rules::{ClaimRules, Owner};
use crate::error::Error;
use crate::lease::Claimed;
use crate::record::{CancelAnswer, Enqueued, ReservedRun};
use crate::stored::require_name;

impl Store {
    /// Accepts a run: writes it as queued, with its first event. A repeated key returns the first run, and so does the
    /// same request with the same id: whoever did not hear the answer asks again.
    ///
    /// # Errors
    /// [`Error::IdempotencyMismatch`] if the key was used for a request that differs in more than its id,
    /// [`Error::RunExists`] if the id was, and [`Error::Text`] for a key that cannot be kept.
    pub async fn enqueue(
        &self,
        request: &RunRequest,
        idempotency_key: Option<&str>,
        now_ms: u64,
    ) -> Result<Enqueued, Error> {
        if let Some(key) = idempotency_key {
            require_name("idempotency key", key)?;
        }
        match self {
            Self::Sqlite(store) => store.enqueue(request, idempotency_key, now_ms).await,
            Self::Postgres(store) => store.enqueue(request, idempotency_key, now_ms).await,
        }
    }

    /// Gives this node the first queued run that it may have now, by priority and then by age: a new attempt, counted
    /// here. A run whose lease has expired is not given; see [`Store::expired`]. `None` also if no slot is free, or
    /// runs before it wait for those that are.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn claim(
        &self,
        owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
        rules: &ClaimRules,
    ) -> Result<Option<Claimed>, Error> {
        match self {
            Self::Sqlite(store) => store.claim(owner, None, now_ms, lease_ms, rules).await,
            Self::Postgres(store) => store.claim(owner, None, now_ms, lease_ms, rules).await,
        }
    }

    /// Gives this node one run, and no other: a new attempt, counted here. `None` if the run is not queued, is
    /// not due, is reserved for another process, or has to wait for a slot.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn claim_run(
        &self,
        run: &RunId,
        owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
        rules: &ClaimRules,
    ) -> Result<Option<Claimed>, Error> {
        match self {
            Self::Sqlite(store) => store.claim(owner, Some(run), now_ms, lease_ms, rules).await,
            Self::Postgres(store) => store.claim(owner, Some(run), now_ms, lease_ms, rules).await,
        }
    }

    /// Whether a queued run waits for earlier messages to the same agent, or for whoever works in its folder.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn is_behind(&self, run: &RunId) -> Result<bool, Error> {
        match self {
            Self::Sqlite(store) => store.is_behind(run).await,
            Self::Postgres(store) => store.is_behind(run).await,
        }
    }

    /// How many attempts are under way and take a slot.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn slots_in_use(&self, now_ms: u64) -> Result<u32, Error> {
        match self {
            Self::Sqlite(store) => store.slots_in_use(now_ms).await,
            Self::Postgres(store) => store.slots_in_use(now_ms).await,
        }
    }

    /// Takes a queued run that was reserved for a process that is known to be dead, so that its end can be
    /// recorded. `None` if it is no longer queued or was not reserved.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn claim_for_recovery(
        &self,
        run: &RunId,
        new_owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        match self {
            Self::Sqlite(store) => store.claim_for_recovery(run, new_owner, now_ms, lease_ms).await,
            Self::Postgres(store) => store.claim_for_recovery(run, new_owner, now_ms, lease_ms).await,
        }
    }

    /// Asks for a run's end. A queued run ends at once; a running one when its node has seen the request.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn request_cancel(&self, run: &RunId, now_ms: u64) -> Result<CancelAnswer, Error> {
        match self {
            Self::Sqlite(store) => store.request_cancel(run, now_ms).await,
            Self::Postgres(store) => store.request_cancel(run, now_ms).await,
        }
    }

    /// Whether somebody has asked for the run's end.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn cancel_requested(&self, run: &RunId) -> Result<bool, Error> {
        match self {
            Self::Sqlite(store) => store.cancel_requested(run).await,
            Self::Postgres(store) => store.cancel_requested(run).await,
        }
    }

    /// Queued runs that only one process may claim.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn reserved_runs(&self) -> Result<Vec<ReservedRun>, Error> {
        match self {
            Self::Sqlite(store) => store.reserved_runs().await,
            Self::Postgres(store) => store.reserved_runs().await,
        }
    }
}
