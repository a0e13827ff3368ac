//! Why the store refused or failed.

use std::io;
use std::path::PathBuf;

use cofferdam_core::{RunId, RunState, SpecId};

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
    /// The address cannot be used.
    #[error("the store cannot be at {url}: {why}")]
    Address {
        /// The address, without its password.
        url: String,
        /// Why.
        why: String,
    },
    /// The database cannot be reached now.
    #[error("failed to reach the database at {url}")]
    Unreachable {
        /// The address, without its password.
        url: String,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// The database refused.
    #[error("failed to open the database")]
    Database(#[source] DatabaseError),
}

impl<E: Into<DatabaseError>> From<E> for OpenError {
    fn from(error: E) -> Self {
        Self::Database(error.into())
    }
}

/// What a database said.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum DatabaseError {
    /// SQLite.
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL, or its driver.
    Postgres(#[from] sqlx::Error),
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
    /// As many messages wait as may: those before it have to be taken first.
    #[error(
        "{messages} messages of {bytes} bytes wait for run {run}, and it takes no more until its agent has taken some"
    )]
    TooManyMessages {
        /// The run.
        run: RunId,
        /// How many wait.
        messages: u64,
        /// How long they are together.
        bytes: u64,
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
    /// There is a run of this id already, for something else.
    #[error("there is already a run {run}")]
    RunExists {
        /// The run.
        run: RunId,
    },
    /// There is no such spec.
    #[error("there is no spec {spec}")]
    NoSuchSpec {
        /// The spec.
        spec: SpecId,
    },
    /// There is a spec of this id already, with other words or of somebody else.
    #[error("there is already a spec {spec}")]
    SpecExists {
        /// The spec.
        spec: SpecId,
    },
    /// A run works on the spec, which is not changed meanwhile.
    #[error("run {run} works on spec {spec}")]
    SpecBusy {
        /// The spec.
        spec: SpecId,
        /// The run.
        run: RunId,
    },
    /// The run belongs to a spec: it is started with the spec alone, and stays on record while it is the last one of it.
    #[error("run {run} belongs to spec {spec}")]
    RunOfSpec {
        /// The run.
        run: RunId,
        /// The spec.
        spec: SpecId,
    },
    /// A stored value cannot be read, such as one that a newer Cofferdam wrote.
    #[error("the stored {what} of run {run} cannot be read")]
    Unreadable {
        /// The run.
        run: String,
        /// Which value.
        what: &'static str,
    },
    /// A text that no store can keep.
    #[error("the {what} {why}")]
    Text {
        /// Which text.
        what: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The database could not be reached, or was lost on the way. What was asked may or may not have been done, unless
    /// the operation says otherwise; it may be asked again.
    #[error("the database cannot be reached")]
    Unavailable(#[source] DatabaseError),
    /// There is no room for more on the database's disk.
    #[error("the database's disk is full")]
    Full(#[source] DatabaseError),
    /// The database failed.
    #[error("the database failed")]
    Database(#[source] DatabaseError),
}

impl Error {
    /// Whether the same may be asked again a little later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Whether there is no room for more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

impl<E: Into<DatabaseError>> From<E> for Error {
    fn from(error: E) -> Self {
        let error = error.into();
        let trouble = match &error {
            DatabaseError::Sqlite(error) => trouble_of_sqlite(error),
            DatabaseError::Postgres(error) => trouble(error),
        };
        match trouble {
            Trouble::Away => Self::Unavailable(error),
            Trouble::Full => Self::Full(error),
            Trouble::Other => Self::Database(error),
        }
    }
}

/// What a failure of the database means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It is away, and will be back.
    Away,
    /// Its disk is full.
    Full,
    /// Anything else.
    Other,
}

pub(crate) fn trouble(error: &sqlx::Error) -> Trouble {
    match error {
        sqlx::Error::Io(error) if error.kind() == io::ErrorKind::StorageFull => Trouble::Full,
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => Trouble::Away,
        sqlx::Error::Database(error) => error.code().map_or(Trouble::Other, |code| trouble_of_code(&code)),
        _ => Trouble::Other,
    }
}

fn trouble_of_sqlite(error: &rusqlite::Error) -> Trouble {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => Trouble::Full,
        _ => Trouble::Other,
    }
}

fn trouble_of_code(code: &str) -> Trouble {
    match code {
        // A connection that failed, or a pooler that has none to give; a server that shuts down, has crashed, or starts;
        // one that became a copy of another; too many connections; a statement that took too long, a lock that was not
        // given in time, and transactions that stood in each other's way.
        "57P01" | "57P02" | "57P03" | "57P05" | "25006" | "53300" | "57014" | "55P03" | "25P03" | "40001"
        | "40P01" => Trouble::Away,
        "53100" => Trouble::Full,
        _ if code.starts_with("08") => Trouble::Away,
        _ => Trouble::Other,
    }
}
