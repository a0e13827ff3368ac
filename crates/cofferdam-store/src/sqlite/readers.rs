//! Connections that read.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::open::{Durability, connect};

/// A few, so that a slow one does not hold up the others.
const READERS: usize = 4;

/// Connections that read, opened as they are needed. Cloning gives another handle to the same ones.
#[derive(Debug, Clone)]
pub(super) struct Readers {
    path: PathBuf,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), places: Arc::new(Semaphore::new(READERS)), idle: Arc::default() }
    }

    /// Waits for one that is free.
    pub(super) async fn place(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.places).acquire_owned().await.expect("it is never closed")
    }

    /// Takes a connection for a place, or opens one. May wait.
    pub(super) fn take(self, place: OwnedSemaphorePermit) -> rusqlite::Result<Lent> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let connection = connect(&self.path, Durability::OfTheProcess)?;
                connection.pragma_update(None, "query_only", "ON")?;
                connection
            }
        };
        Ok(Lent { connection: Some(connection), readers: self, _place: place })
    }
}

/// A connection that goes back when it is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    connection: Option<Connection>,
    readers: Readers,
    _place: OwnedSemaphorePermit,
}

impl Deref for Lent {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.readers.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(self.connection.take());
    }
}
