//! The record in one SQLite file. One file per group of operations; `open` is where to start.
//!
//! Each process has one connection that writes, behind a lock, and a few that read. Every write is a
//! `BEGIN IMMEDIATE` transaction, so that it sees what it changes and never fails half way for want of
//! the write lock. An operation is handed whole to a thread that may wait: SQLite is faster than a way to another
//! thread and back, so that going there for each statement would cost more than the statements do (0027).

mod adopt;
mod append;
mod artifacts;
mod audit;
mod cancel;
mod check;
mod claim;
mod egress;
mod enqueue;
mod events;
mod fence;
mod finish;
mod keys;
mod letters;
mod messages;
mod migrate;
mod nodes;
mod open;
mod projects;
mod remove;
mod renew;
mod retention;
mod runs;
mod slots;
mod statements;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{Mutex, OnceCell};

use self::open::{Durability, Readers};
use self::statements::{all, execute, one, optional};
use crate::error::Error;
use crate::stored::{from_json, int, parse, parse_state, to_json, uint};

/// The record in one SQLite file. Cloning gives another handle to the same connections.
#[derive(Debug, Clone)]
pub struct Sqlite {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    writer: Arc<Mutex<Connection>>,
    readers: Readers,
    /// Writes that need not survive a power cut; opened when the first such write is made.
    ledger: OnceCell<Arc<Mutex<Connection>>>,
    /// Where processes of this record listen for wakes.
    wake_folder: PathBuf,
}

impl Sqlite {
    /// One transaction that holds the write lock from its beginning, and is undone if the work fails. It comes to its end
    /// also if nobody waits for that any more.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        in_transaction(Arc::clone(&self.shared.writer), work).await
    }

    /// The same, with a commit that survives the death of this process and not a power cut.
    async fn write_ledger<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let ledger = self.shared.ledger.get_or_try_init(async || {
            let path = self.shared.path.clone();
            let opened = blocking(move || open::connect(&path, Durability::OfTheProcess)).await?;
            Ok::<_, Error>(Arc::new(Mutex::new(opened)))
        });
        in_transaction(Arc::clone(ledger.await?), work).await
    }

    /// Reads. Each statement sees what is committed when it begins.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.shared.readers.read(&self.shared.path, work).await
    }

    /// The folder of wake sockets, beside the database.
    pub(crate) fn wake_folder(&self) -> &Path {
        &self.shared.wake_folder
    }

    pub(crate) async fn ping(&self) -> Result<(), Error> {
        self.read(|connection| one::<i64>(connection, "SELECT 1", [], |row| Ok(row.get(0)?)).map(drop)).await
    }
}

async fn in_transaction<T: Send + 'static>(
    connection: Arc<Mutex<Connection>>,
    work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    // Waited for here, so that a queue of writers takes no threads.
    let mut connection = connection.lock_owned().await;
    blocking(move || {
        // Dropping it undoes it, unless SQLite has done so itself, as it does when the disk is full.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    })
    .await
}

/// Does something that may wait, on a thread for that.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime ends, and so does whoever waits here.
        Err(_) => std::future::pending().await,
    }
}
