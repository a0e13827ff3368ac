//! Brings the database to the newest schema.
//!
//! The schema's version is SQLite's `user_version`: one number in the file's header, so that opening an
//! up-to-date database costs one read.

use std::cmp::Ordering;
use std::time::Duration;

use sqlx::{Connection, SqliteConnection};

use crate::error::OpenError;

/// In order; the first brings version 0 to version 1. Released ones are never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_runs.sql"),
    include_str!("../../migrations/sqlite/0002_egress.sql"),
    include_str!("../../migrations/sqlite/0003_dead_letters.sql"),
    include_str!("../../migrations/sqlite/0004_service.sql"),
];

/// Switching to WAL is refused at once, whatever the busy timeout, while another process does it too.
const WAL_TRIES: u32 = 200;
const WAL_PAUSE: Duration = Duration::from_millis(25);

pub(super) async fn to_newest(connection: &mut SqliteConnection) -> Result<(), OpenError> {
    let known = i64::try_from(MIGRATIONS.len()).expect("there are few migrations");
    let found = version(connection).await?;
    match found.cmp(&known) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => return Err(OpenError::NewerSchema { found, known }),
        Ordering::Less => use_wal(connection).await?,
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Another process may have migrated while this one waited for the lock.
    let found = version(&mut transaction).await?;
    if found >= known {
        return Ok(());
    }
    for (index, migration) in MIGRATIONS.iter().enumerate() {
        if index as i64 >= found {
            sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
        }
    }
    let set_version = sqlx::AssertSqlSafe(format!("PRAGMA user_version = {known}"));
    sqlx::raw_sql(set_version).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

pub(super) async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("PRAGMA user_version").fetch_one(connection).await
}

async fn use_wal(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    for _ in 0..WAL_TRIES {
        match sqlx::query_scalar::<_, String>("PRAGMA journal_mode = WAL").fetch_one(&mut *connection).await {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) => {}
            Err(sqlx::Error::Database(error)) if is_busy(error.as_ref()) => {}
            Err(error) => return Err(error),
        }
        tokio::time::sleep(WAL_PAUSE).await;
    }
    Err(sqlx::Error::Protocol("the database cannot be switched to a write-ahead log".to_owned()))
}

fn is_busy(error: &dyn sqlx::error::DatabaseError) -> bool {
    // SQLITE_BUSY, and its extended codes in the upper bits.
    error.code().and_then(|code| code.parse::<i32>().ok()).is_some_and(|code| code & 0xff == 5)
}
