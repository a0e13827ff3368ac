//! An attempt from its adoption to its end.

use cofferdam_core::{NodeId, Outcome, RunId};

use super::Store;
use crate::claim_rules::Owner;
use crate::error::Error;
use crate::lease::{Claimed, Lease};
use crate::record::{AfterAttempt, Left, LiveRun};

impl Store {
    /// Gives a node that was restarted the attempt of its former self, with a new token. `None` if the node
    /// does not hold the run.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn adopt(
        &self,
        node: &NodeId,
        run: &RunId,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        match self {
            Self::Sqlite(store) => store.adopt(node, run, now_ms, lease_ms).await,
            Self::Postgres(store) => store.adopt(node, run, now_ms, lease_ms).await,
        }
    }

    /// Takes over the attempt of an owner that is known to be dead, with a new token. `None` if somebody else
    /// was faster: the token is no longer the expected one, or the run no longer running.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn adopt_for_recovery(
        &self,
        run: &RunId,
        expected_token: u64,
        new_owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        match self {
            Self::Sqlite(store) => {
                store.adopt_for_recovery(run, expected_token, new_owner, now_ms, lease_ms).await
            }
            Self::Postgres(store) => {
                store.adopt_for_recovery(run, expected_token, new_owner, now_ms, lease_ms).await
            }
        }
    }

    /// Keeps a lease alive. An expired one that nobody took may be renewed: a laptop that slept.
    ///
    /// # Errors
    /// [`Error::StaleLease`] if somebody took the run or the attempt is over.
    pub async fn renew(&self, lease: &Lease, now_ms: u64, lease_ms: u64) -> Result<(), Error> {
        match self {
            Self::Sqlite(store) => store.renew(lease, now_ms, lease_ms).await,
            Self::Postgres(store) => store.renew(lease, now_ms, lease_ms).await,
        }
    }

    /// Every run that is under way, whether or not its lease has expired.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn live_runs(&self) -> Result<Vec<LiveRun>, Error> {
        match self {
            Self::Sqlite(store) => store.live_runs().await,
            Self::Postgres(store) => store.live_runs().await,
        }
    }

    /// The runs under way whose lease has expired. What becomes of them is for recovery to decide: adopt, then
    /// retry or finish.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn expired(&self, now_ms: u64) -> Result<Vec<LiveRun>, Error> {
        match self {
            Self::Sqlite(store) => store.expired(now_ms).await,
            Self::Postgres(store) => store.expired(now_ms).await,
        }
    }

    /// Ends the attempt and queues the run again, or cancels it if somebody has asked for its end meanwhile. Asked again
    /// with the same words, by an owner that did not hear the answer, it says the same and changes nothing.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn schedule_retry(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        not_before_ms: u64,
        left: &Left,
        now_ms: u64,
    ) -> Result<AfterAttempt, Error> {
        match self {
            Self::Sqlite(store) => store.schedule_retry(lease, outcome, not_before_ms, left, now_ms).await,
            Self::Postgres(store) => store.schedule_retry(lease, outcome, not_before_ms, left, now_ms).await,
        }
    }

    /// Ends the attempt and gives the run its final state, together with what the attempt leaves. Messages
    /// that still wait are refused. With a letter among what it leaves, the run is a dead letter. Asked again with the
    /// same words, by an owner that did not hear the answer, it says the same and changes nothing.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn finish(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        left: &Left,
        now_ms: u64,
    ) -> Result<AfterAttempt, Error> {
        match self {
            Self::Sqlite(store) => store.finish(lease, outcome, left, now_ms).await,
            Self::Postgres(store) => store.finish(lease, outcome, left, now_ms).await,
        }
    }
}
