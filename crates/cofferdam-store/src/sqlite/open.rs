//! Opens the database.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};
use rustix::io::Errno;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Mutex, OnceCell};

use super::{Shared, Sqlite, migrate};
use crate::error::OpenError;
use crate::file_system::network_file_system;

/// Longer than any transaction of ours takes, on a machine that is busy with agents.
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);
/// A few readers, so that a slow one does not hold up the others.
const READERS: u32 = 4;

impl Sqlite {
    /// Opens the database, making it if it is not there.
    ///
    /// # Errors
    /// [`OpenError`], among others if it is on a network file system.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        prepare_file(path)?;
        // FULL, since a power cut must not undo what was acknowledged. WAL is a property of the file
        // and is set by the first migration.
        let options = SqliteConnectOptions::new()
            .filename(path)
            .busy_timeout(BUSY_TIMEOUT)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .disable_statement_logging();
        let mut writer = options.connect().await?;
        migrate::to_newest(&mut writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_lazy_with(options.clone().pragma("query_only", "ON"));
        Ok(Self {
            shared: Arc::new(Shared {
                writer: Mutex::new(writer),
                readers,
                writer_options: options.clone(),
                ledger: OnceCell::new(),
                ledger_options: options.synchronous(SqliteSynchronous::Normal),
                wake_folder: path.with_file_name("nodes"),
            }),
        })
    }

    /// Closes the connections if this is the last handle. Dropping the handles does the same in the
    /// background; nothing that was written depends on it.
    pub async fn close(self) {
        if let Some(shared) = Arc::into_inner(self.shared) {
            shared.readers.close().await;
            if let Some(ledger) = shared.ledger.into_inner() {
                let _ = ledger.into_inner().close().await;
            }
            // The connection is closed whatever it answers, and all its writes were committed before.
            let _ = shared.writer.into_inner().close().await;
        }
    }
}

fn prepare_file(path: &Path) -> Result<(), OpenError> {
    let failed = |errno: Errno| OpenError::File { path: path.to_owned(), source: errno.into() };
    // Made without opening it: closing any descriptor of the file would drop the locks that another
    // handle of this process holds on it. Others on this machine must not read prompts and outputs; the
    // log beside it inherits the mode.
    match rustix::fs::mknodat(CWD, path, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(failed(errno)),
    }
    let facts = rustix::fs::statfs(path).map_err(failed)?;
    // The magic number is 32 bits wide; some kernels hand it over with its sign extended.
    match network_file_system(facts.f_type as u32) {
        Some(fs) => Err(OpenError::NetworkFileSystem { path: path.to_owned(), fs }),
        None => Ok(()),
    }
}
