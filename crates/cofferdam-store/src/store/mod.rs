//! The store: one type whatever database is behind it. One arm per database in each method.

mod access;
mod attempt;
mod egress;
mod evidence;
mod letters;
mod messages;
mod nodes;
mod projects;
mod queue;
mod retention;
mod runs;

use std::path::Path;

use crate::consistency::Examined;
use crate::error::{Error, OpenError};
use crate::options::{PostgresOptions, StoreOptions};
use crate::postgres::Postgres;
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
    pub fn with_patience(&self, patience: std::time::Duration) -> Self {
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
        match self {
            Self::Sqlite(store) => store.ping().await,
            Self::Postgres(store) => store.ping().await,
        }
    }

    /// Looks whether the database is whole and the record holds what must be true of it. Reads all of it.
    ///
    /// # Errors
    /// If the database fails; what is wrong with the record is no error.
    pub async fn check(&self) -> Result<Examined, Error> {
        match self {
            Self::Sqlite(store) => store.check().await,
            Self::Postgres(store) => store.check().await,
        }
    }

    /// Which database it is and the version of its schema, without looking for problems.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn schema(&self) -> Result<Examined, Error> {
        match self {
            Self::Sqlite(store) => store.schema().await,
            Self::Postgres(store) => store.schema().await,
        }
    }

    /// Closes the connections if this is the last handle.
    pub async fn close(self) {
        match self {
            Self::Sqlite(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
        }
    }
}
