//! What a run spends and reaches through the broker.

use cofferdam_core::{AllowRule, AttemptRef, Event, ModelTrouble, NewEvent, RunId, Spent};

use super::Store;
use crate::error::Error;
use crate::stored::without_nul;

impl Store {
    /// Adds what the broker saw to the attempt's run. Events of an attempt that is over are dropped.
    ///
    /// # Errors
    /// [`Error::NotFound`], or if the database fails.
    pub async fn record_egress(
        &self,
        attempt: &AttemptRef,
        events: &[NewEvent],
    ) -> Result<Vec<Event>, Error> {
        match self {
            Self::Sqlite(store) => store.record_egress(attempt, events).await,
            Self::Postgres(store) => store.record_egress(attempt, events).await,
        }
    }

    /// Writes down what is set aside for a model call, and names the call.
    ///
    /// # Errors
    /// [`Error::RunEnded`] if the attempt is over: then nothing may be forwarded.
    pub async fn begin_call(
        &self,
        attempt: &AttemptRef,
        model: &str,
        reserved: &Spent,
        now_ms: u64,
    ) -> Result<i64, Error> {
        // The agent writes the model's name.
        let model = &without_nul(model);
        match self {
            Self::Sqlite(store) => store.begin_call(attempt, model, reserved, now_ms).await,
            Self::Postgres(store) => store.begin_call(attempt, model, reserved, now_ms).await,
        }
    }

    /// Writes down what a call cost and how it ended, with the events that tell of it.
    ///
    /// # Errors
    /// If the database fails; the reservation stays then.
    pub async fn end_call(
        &self,
        attempt: &AttemptRef,
        id: i64,
        spent: &Spent,
        trouble: Option<&ModelTrouble>,
        events: &[NewEvent],
        now_ms: u64,
    ) -> Result<Vec<Event>, Error> {
        match self {
            Self::Sqlite(store) => store.end_call(attempt, id, spent, trouble, events, now_ms).await,
            Self::Postgres(store) => store.end_call(attempt, id, spent, trouble, events, now_ms).await,
        }
    }

    /// What the run has spent, over all attempts; a call that never ended counts as reserved.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn spent(&self, run: &RunId) -> Result<Spent, Error> {
        match self {
            Self::Sqlite(store) => store.spent(run).await,
            Self::Postgres(store) => store.spent(run).await,
        }
    }

    /// How many of the attempt's model calls have not ended.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn calls_in_flight(&self, attempt: &AttemptRef) -> Result<u64, Error> {
        match self {
            Self::Sqlite(store) => store.calls_in_flight(attempt).await,
            Self::Postgres(store) => store.calls_in_flight(attempt).await,
        }
    }

    /// How the attempt's last model call failed; `None` if it did not, or there was none.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn last_trouble(&self, attempt: &AttemptRef) -> Result<Option<ModelTrouble>, Error> {
        match self {
            Self::Sqlite(store) => store.last_trouble(attempt).await,
            Self::Postgres(store) => store.last_trouble(attempt).await,
        }
    }

    /// Says that a budget of the run was found spent. The first time it is an event.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn exceed_budget(
        &self,
        attempt: &AttemptRef,
        which: &str,
        now_ms: u64,
    ) -> Result<Vec<Event>, Error> {
        match self {
            Self::Sqlite(store) => store.exceed_budget(attempt, which, now_ms).await,
            Self::Postgres(store) => store.exceed_budget(attempt, which, now_ms).await,
        }
    }

    /// Which budget of the run was found spent, if any was.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn budget_exceeded(&self, run: &RunId) -> Result<Option<String>, Error> {
        match self {
            Self::Sqlite(store) => store.budget_exceeded(run).await,
            Self::Postgres(store) => store.budget_exceeded(run).await,
        }
    }

    /// Lets a live run reach one more place. False if it could already.
    ///
    /// # Errors
    /// [`Error::RunEnded`] or [`Error::NotFound`].
    pub async fn allow(&self, run: &RunId, rule: &AllowRule, now_ms: u64) -> Result<bool, Error> {
        match self {
            Self::Sqlite(store) => store.allow(run, rule, now_ms).await,
            Self::Postgres(store) => store.allow(run, rule, now_ms).await,
        }
    }

    /// What was added to the run's allow-list since it was accepted.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn allowances(&self, run: &RunId) -> Result<Vec<AllowRule>, Error> {
        match self {
            Self::Sqlite(store) => store.allowances(run).await,
            Self::Postgres(store) => store.allowances(run).await,
        }
    }
}
