//! Opens the database.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, FileType, Mode};
use rustix::io::Errno;
use tokio::sync::{Mutex, OnceCell};

use super::readers::Readers;
use super::{Shared, Sqlite, blocking, migrate};
use crate::error::OpenError;
use crate::file_system::network_file_system;

/// Longer than any transaction of ours takes, on a machine that is busy with agents.
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);
/// More than there are statements.
const STATEMENTS: usize = 256;

impl Sqlite {
    /// Opens the database, making it if it is not there.
    ///
    /// # Errors
    /// [`OpenError`], among others if it is on a network file system.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        prepare_file(path)?;
        let own = path.to_owned();
        let writer = blocking(move || {
            let mut writer = connect(&own, Durability::OfTheMachine)?;
            migrate::to_newest(&mut writer)?;
            Ok::<_, OpenError>(writer)
        });
        Ok(Self {
            shared: Arc::new(Shared {
                path: path.to_owned(),
                writer: Arc::new(Mutex::new(writer.await?)),
                readers: Readers::of(path),
                ledger: OnceCell::new(),
                wake_folder: path.with_file_name("nodes"),
                hints: OnceLock::new(),
            }),
        })
    }

    /// Closes the connections if this is the last handle. Dropping the handles does the same; nothing that was written
    /// depends on it.
    pub async fn close(self) {
        // The last one to close copies the log into the file, which may take a while.
        blocking(move || drop(self)).await;
    }
}

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// A power cut: what was acknowledged must not be undone by one.
    OfTheMachine,
    /// The death of the process.
    OfTheProcess,
}

/// A connection. WAL is a property of the file, and is set by the first migration.
pub(super) fn connect(path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    // The file is there, and its path is no address.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    let synchronous = match durability {
        Durability::OfTheMachine => "FULL",
        Durability::OfTheProcess => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
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
