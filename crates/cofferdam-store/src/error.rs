//! Why the store refused or failed.

use std::io;
use std::path::PathBuf;

use cofferdam_core::{RunId, RunState};

use crate::message::MessageId;

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// SQLite's locks and shared memory do not hold across machines; the record would be damaged.
    #[error("the database {} is on a network file system ({fs})", path.display())]
    NetworkFileSystem {
        /// The database.
        path: PathBuf,
        /// The file system's name.
        fs: &'static str,
    },
    /// The file could not be made or looked at.
    #[error("failed to open the database file {}", path.display())]
    File {
        /// The database.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A newer Cofferdam has written it.
    #[error("the database has schema version {found}, and this program knows only up to {known}")]
    NewerSchema {
        /// The version of the database.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The database refused.
    #[error("failed to open the database")]
    Database(#[from] sqlx::Error),
}

/// Why an operation was refused or failed. What was refused left no trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such run.
    #[error("there is no run {run}")]
    NotFound {
        /// The run.
        run: RunId,
    },
    /// Somebody else has taken the run since, or the attempt is over: the caller must stop.
    #[error("the lease on attempt {attempt} of run {run} is no longer valid")]
    StaleLease {
        /// The run.
        run: RunId,
        /// The lease's attempt.
        attempt: u32,
    },
    /// The run has its final state, which nothing changes.
    #[error("run {run} is already {state}")]
    AlreadyFinal {
        /// The run.
        run: RunId,
        /// Its final state.
        state: RunState,
    },
    /// The run is still under way.
    #[error("run {run} is still {state}")]
    NotFinal {
        /// The run.
        run: RunId,
        /// Its state.
        state: RunState,
    },
    /// A message came after the run's end.
    #[error("run {run} has ended and takes no message")]
    RunEnded {
        /// The run.
        run: RunId,
    },
    /// There is no such message for this run.
    #[error("run {run} has no message {message}")]
    NoSuchMessage {
        /// The run.
        run: RunId,
        /// The message.
        message: MessageId,
    },
    /// The key was used before, for something else.
    #[error("idempotency key `{key}` belongs to run {run}, whose request differs")]
    IdempotencyMismatch {
        /// The key.
        key: String,
        /// The run that it made.
        run: RunId,
    },
    /// A stored value cannot be read, such as one that a newer Cofferdam wrote.
    #[error("the stored {what} of run {run} cannot be read")]
    Unreadable {
        /// The run.
        run: String,
        /// Which value.
        what: &'static str,
    },
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
}
