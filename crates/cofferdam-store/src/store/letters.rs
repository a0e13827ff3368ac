//! Runs that failed for good.

use cofferdam_core::{AttemptRef, Outcome, RunId};

use super::Store;
use crate::error::Error;
use crate::record::KeptLetter;

impl Store {
    /// All dead letters, newest first.
    ///
    /// # Errors
    /// If the database fails or a letter cannot be read.
    pub async fn letters(&self) -> Result<Vec<KeptLetter>, Error> {
        match self {
            Self::Sqlite(store) => store.letters().await,
            Self::Postgres(store) => store.letters().await,
        }
    }

    /// The dead letter of one run, if it is one.
    ///
    /// # Errors
    /// If the database fails or the letter cannot be read.
    pub async fn letter(&self, run: &RunId) -> Result<Option<KeptLetter>, Error> {
        match self {
            Self::Sqlite(store) => store.letter(run).await,
            Self::Postgres(store) => store.letter(run).await,
        }
    }

    /// The runs that are dead letters.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn letter_runs(&self) -> Result<Vec<RunId>, Error> {
        match self {
            Self::Sqlite(store) => store.letter_runs().await,
            Self::Postgres(store) => store.letter_runs().await,
        }
    }

    /// Forgets a dead letter, and not its run. False if there was none.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn remove_letter(&self, run: &RunId) -> Result<bool, Error> {
        match self {
            Self::Sqlite(store) => store.remove_letter(run).await,
            Self::Postgres(store) => store.remove_letter(run).await,
        }
    }

    /// How an attempt ended; `None` if there was no such attempt, or it has not ended.
    ///
    /// # Errors
    /// If the database fails or the outcome cannot be read.
    pub async fn outcome_of(&self, attempt: &AttemptRef) -> Result<Option<Outcome>, Error> {
        match self {
            Self::Sqlite(store) => store.outcome_of(attempt).await,
            Self::Postgres(store) => store.outcome_of(attempt).await,
        }
    }
}
