//! The record in one SQLite file. One file per group of operations; `open` is where to start.
//!
//! Each process has one connection that writes, behind a lock, and a few that read. Every write is a
//! `BEGIN IMMEDIATE` transaction, so that it sees what it changes and never fails half way for want of
//! the write lock.

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

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection, SqlitePool};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::error::Error;
use crate::stored::{from_json, int, parse, parse_state, to_json, uint};

/// The record in one SQLite file. Cloning gives another handle to the same connections.
#[derive(Debug, Clone)]
pub struct Sqlite {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    writer: Mutex<SqliteConnection>,
    writer_options: SqliteConnectOptions,
    readers: SqlitePool,
    /// Writes that need not survive a power cut; opened when the first such write is made.
    ledger: OnceCell<Mutex<SqliteConnection>>,
    ledger_options: SqliteConnectOptions,
    /// Where processes of this record listen for wakes.
    wake_folder: PathBuf,
}

type Transaction<'a> = sqlx::Transaction<'a, sqlx::Sqlite>;

impl Sqlite {
    async fn writer(&self) -> MutexGuard<'_, SqliteConnection> {
        let mut writer = self.shared.writer.lock().await;
        mend(&mut writer, &self.shared.writer_options).await;
        writer
    }

    /// The connection whose commits survive the death of this process, and not a power cut.
    async fn ledger(&self) -> Result<MutexGuard<'_, SqliteConnection>, Error> {
        let open = async || self.shared.ledger_options.connect().await.map(Mutex::new);
        let mut ledger = self.shared.ledger.get_or_try_init(open).await?.lock().await;
        mend(&mut ledger, &self.shared.ledger_options).await;
        Ok(ledger)
    }

    /// The folder of wake sockets, beside the database.
    pub(crate) fn wake_folder(&self) -> &Path {
        &self.shared.wake_folder
    }

    pub(crate) async fn ping(&self) -> Result<(), Error> {
        sqlx::query("SELECT 1").execute(self.readers()).await?;
        Ok(())
    }

    fn readers(&self) -> &SqlitePool {
        &self.shared.readers
    }
}

/// Replaces a connection that still thinks itself in a transaction. After some errors, such as a full disk, SQLite has
/// undone the transaction by itself, and the library, which is then refused to undo it, would begin no other.
async fn mend(connection: &mut SqliteConnection, options: &SqliteConnectOptions) {
    if !connection.is_in_transaction() {
        return;
    }
    // What a dropped transaction wrote is undone by another thread, which has come so far when it answers.
    let _ = connection.ping().await;
    if connection.is_in_transaction()
        && let Ok(fresh) = options.connect().await
    {
        *connection = fresh;
    }
}

/// A transaction that holds the write lock from its beginning. Dropping it undoes it.
async fn begin(writer: &mut SqliteConnection) -> Result<Transaction<'_>, Error> {
    Ok(writer.begin_with("BEGIN IMMEDIATE").await?)
}
