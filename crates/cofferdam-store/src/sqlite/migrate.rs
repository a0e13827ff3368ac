//! Brings the database to the newest schema.
//!
//! The schema's version is SQLite's `user_version`: one number in the file's header, so that opening an
//! up-to-date database costs one read.

use std::cmp::Ordering;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::error::OpenError;
use crate::migrations::{MIGRATIONS, NEWEST};

/// Versions 1 to 4, in order. Released ones are never edited.
const FIRST: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_runs.sql"),
    include_str!("../../migrations/sqlite/0002_egress.sql"),
    include_str!("../../migrations/sqlite/0003_dead_letters.sql"),
    include_str!("../../migrations/sqlite/0004_service.sql"),
];

/// Switching to WAL is refused at once, whatever the busy timeout, while another process does it too.
const WAL_TRIES: u32 = 200;
const WAL_PAUSE: Duration = Duration::from_millis(25);

pub(super) fn to_newest(connection: &mut Connection) -> Result<(), OpenError> {
    let found = version(connection)?;
    match found.cmp(&NEWEST) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => return Err(OpenError::NewerSchema { found, known: NEWEST }),
        Ordering::Less => use_wal(connection)?,
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated while this one waited for the lock.
    let found = version(&transaction)?;
    if found >= NEWEST {
        return Ok(());
    }
    let first = (1..).zip(FIRST.iter().copied());
    let later = MIGRATIONS.iter().map(|migration| (migration.version, migration.sqlite));
    for (version, migration) in first.chain(later) {
        if version > found {
            transaction.execute_batch(migration)?;
        }
    }
    transaction.pragma_update(None, "user_version", NEWEST)?;
    transaction.commit()?;
    Ok(())
}

pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    let mut tries = 0;
    loop {
        let mode =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) if tries < WAL_TRIES => {}
            Err(error) if tries < WAL_TRIES && error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
            }
            Ok(mode) => return Err(rusqlite::Error::InvalidColumnType(0, mode, rusqlite::types::Type::Text)),
            Err(error) => return Err(error),
        }
        tries += 1;
        std::thread::sleep(WAL_PAUSE);
    }
}
