//! The store: one type whatever database is behind it. Each operation is written once, as an async function over a
//! [`Session`]; one file for each group of them.

mod access;
mod adopt;
mod append;
mod audit;
mod cancel;
mod claim;
mod egress;
mod enqueue;
mod events;
mod evidence;
mod fence;
mod finish;
mod letters;
mod messages;
mod node_requests;
mod nodes;
mod processes;
mod projects;
mod relocate;
mod renew;
mod retention;
mod runs;
mod slots;
mod specs;
mod system_config;
mod turns;

use std::path::Path;
use std::time::Duration;

pub use self::messages::{MOST_PENDING_BYTES, MOST_PENDING_MESSAGES};
pub use self::system_config::ConfigEntry;
use crate::consistency::{Examined, RULES};
use crate::error::{Error, OpenError};
use crate::options::{PostgresOptions, StoreOptions};
use crate::postgres::Postgres;
use crate::session::Session;
use crate::sqlite::Sqlite;

/// The record of every run. Cloning gives another handle to the same record.
#[derive(Debug, Clone)]
pub enum Store {
    /// In one file on this machine.
    Sqlite(Sqlite),
    /// In a database of many nodes.
    Postgres(Postgres),
}

impl Store {
    /// Opens the record, making it if it is not there, and brings it to the newest schema.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(options: &StoreOptions) -> Result<Self, OpenError> {
        match options {
            StoreOptions::Sqlite(path) => Self::open_sqlite(path).await,
            StoreOptions::Postgres(options) => Self::open_postgres(options).await,
        }
    }

    /// Opens the record in this database.
    ///
    /// # Errors
    /// [`OpenError`], among others if the database cannot be reached.
    pub async fn open_postgres(options: &PostgresOptions) -> Result<Self, OpenError> {
        Ok(Self::Postgres(Postgres::open(options).await?))
    }

    /// The same record, with operations that go on trying for so long while the database is away. A file is never away.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        match self {
            Self::Sqlite(store) => Self::Sqlite(store.clone()),
            Self::Postgres(store) => Self::Postgres(store.with_patience(patience)),
        }
    }

    /// Opens the record in this file, making it if it is not there.
    ///
    /// # Errors
    /// [`OpenError`], among others if the file is on a network file system.
    pub async fn open_sqlite(path: &Path) -> Result<Self, OpenError> {
        Ok(Self::Sqlite(Sqlite::open(path).await?))
    }

    /// Whether the database answers now.
    ///
    /// # Errors
    /// If it does not.
    pub async fn ping(&self) -> Result<(), Error> {
        let asked = self.with_patience(Duration::ZERO);
        asked.read(async |session| session.one("SELECT 1", &[], |_| Ok(())).await).await
    }

    /// Looks whether the database is whole and the record holds what must be true of it. Reads all of it.
    ///
    /// # Errors
    /// If the database fails; what is wrong with the record is no error.
    pub async fn check(&self) -> Result<Examined, Error> {
        self.read(async |session| {
            let mut examined = schema(session).await?;
            examined.problems = match session {
                Session::Sqlite(session) => session.examine()?,
                Session::Postgres(session) => session.examine().await?,
            };
            for rule in RULES {
                let broken = session.all(rule.broken_by, &[], |row| Ok(rule.problem(row.first()?))).await?;
                examined.problems.extend(broken);
            }
            Ok(examined)
        })
        .await
    }

    /// Which database it is and the version of its schema, without looking for problems.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn schema(&self) -> Result<Examined, Error> {
        self.read(async |session| schema(session).await).await
    }

    /// Closes the connections if this is the last handle.
    pub async fn close(self) {
        match self {
            Self::Sqlite(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
        }
    }

    /// Does one operation in one transaction. It may be called again: what it had done is undone by then. The closure owns
    /// what it needs; with a reference in it, even one to a constant, the compiler cannot tell that the future may be sent to
    /// another thread.
    async fn write<T: Send + 'static>(
        &self,
        operation: impl AsyncFn(&mut Session<'_>) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::Sqlite(store) => store.write(operation).await,
            Self::Postgres(store) => store.write(operation).await,
        }
    }

    /// The same for what need not survive a power cut, where the database can tell the difference.
    async fn write_ledger<T: Send + 'static>(
        &self,
        operation: impl AsyncFn(&mut Session<'_>) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::Sqlite(store) => store.write_ledger(operation).await,
            Self::Postgres(store) => store.write(operation).await,
        }
    }

    /// Reads. Each statement sees what is committed when it begins.
    async fn read<T: Send + 'static>(
        &self,
        operation: impl AsyncFn(&mut Session<'_>) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::Sqlite(store) => store.read(operation).await,
            Self::Postgres(store) => store.read(operation).await,
        }
    }
}

async fn schema(session: &mut Session<'_>) -> Result<Examined, Error> {
    match session {
        Session::Sqlite(session) => session.schema(),
        Session::Postgres(session) => session.schema().await,
    }
}
