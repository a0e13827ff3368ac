//! Reading and forgetting runs.

use cofferdam_core::RunId;

use super::Store;
use crate::error::Error;
use crate::record::{AttemptRecord, RunFilter, RunMark, RunRecord, StateCounts};

impl Store {
    /// Everything about a run but its events.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn run(&self, run: &RunId) -> Result<RunRecord, Error> {
        match self {
            Self::Sqlite(store) => store.run(run).await,
            Self::Postgres(store) => store.run(run).await,
        }
    }

    /// The newest runs, newest first.
    ///
    /// # Errors
    /// If the database fails or a run cannot be read.
    pub async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, Error> {
        match self {
            Self::Sqlite(store) => store.list_runs(filter).await,
            Self::Postgres(store) => store.list_runs(filter).await,
        }
    }

    /// How far each of these runs is; one that is not on record is left out.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn run_marks(&self, runs: &[RunId]) -> Result<Vec<RunMark>, Error> {
        match self {
            Self::Sqlite(store) => store.run_marks(runs).await,
            Self::Postgres(store) => store.run_marks(runs).await,
        }
    }

    /// The run's attempts, the first one first.
    ///
    /// # Errors
    /// If the database fails or an attempt cannot be read.
    pub async fn attempts(&self, run: &RunId) -> Result<Vec<AttemptRecord>, Error> {
        match self {
            Self::Sqlite(store) => store.attempts(run).await,
            Self::Postgres(store) => store.attempts(run).await,
        }
    }

    /// How many runs are in each state.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn state_counts(&self, now_ms: u64) -> Result<StateCounts, Error> {
        match self {
            Self::Sqlite(store) => store.state_counts(now_ms).await,
            Self::Postgres(store) => store.state_counts(now_ms).await,
        }
    }

    /// Forgets a run that has ended, with its events, messages and artifact records. Files are not touched.
    ///
    /// # Errors
    /// [`Error::NotFinal`] or [`Error::NotFound`].
    pub async fn remove_run(&self, run: &RunId) -> Result<(), Error> {
        match self {
            Self::Sqlite(store) => store.remove_run(run).await,
            Self::Postgres(store) => store.remove_run(run).await,
        }
    }
}
