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

use crate::error::OpenError;
use crate::sqlite::Sqlite;

/// The record of every run. Cloning gives another handle to the same record.
#[derive(Debug, Clone)]
pub enum Store {
    /// In one file on this machine.
    Sqlite(Sqlite),
}

impl Store {
    /// Opens the record in this file, making it if it is not there.
    ///
    /// # Errors
    /// [`OpenError`], among others if the file is on a network file system.
    pub async fn open_sqlite(path: &Path) -> Result<Self, OpenError> {
        Ok(Self::Sqlite(Sqlite::open(path).await?))
    }

    /// Closes the connections if this is the last handle.
    pub async fn close(self) {
        match self {
            Self::Sqlite(store) => store.close().await,
        }
    }
}
