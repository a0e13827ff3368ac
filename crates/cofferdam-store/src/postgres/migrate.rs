//! Brings the database to the newest schema.

use std::cmp::Ordering;

use sqlx::{Connection, PgConnection};

use crate::error::OpenError;
use crate::migrations::{MIGRATIONS, NEWEST};

/// Version 1, which is the record as SQLite has it in version 4. It is never edited.
const FIRST: &str = include_str!("../../migrations/postgres/0001_record.sql");

/// Whoever migrates holds the lock of this number, which spells `coffer`. It goes with the transaction, so that it also
/// works behind a pooler.
const LOCK: &str = "SELECT pg_advisory_xact_lock(109270976488818)";

pub(super) async fn to_newest(connection: &mut PgConnection) -> Result<(), OpenError> {
    match judge(version(connection).await?)? {
        Ordering::Less => {}
        Ordering::Equal | Ordering::Greater => return Ok(()),
    }
    let mut transaction = connection.begin().await?;
    sqlx::raw_sql(LOCK).execute(&mut *transaction).await?;
    // Another process may have migrated while this one waited for the lock.
    let found = version(&mut transaction).await?;
    if judge(found)? != Ordering::Less {
        return Ok(());
    }
    let later = MIGRATIONS.iter().map(|migration| (migration.version, migration.postgres));
    for (version, migration) in [(1, FIRST)].into_iter().chain(later) {
        if version > found {
            sqlx::raw_sql(migration).execute(&mut *transaction).await?;
        }
    }
    let written = format!(
        "CREATE TABLE IF NOT EXISTS cofferdam_schema (version bigint PRIMARY KEY); \
         DELETE FROM cofferdam_schema; INSERT INTO cofferdam_schema (version) VALUES ({NEWEST})"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(written)).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

fn judge(found: i64) -> Result<Ordering, OpenError> {
    match found.cmp(&NEWEST) {
        Ordering::Greater => Err(OpenError::NewerSchema { found, known: NEWEST }),
        order @ (Ordering::Less | Ordering::Equal) => Ok(order),
    }
}

/// The schema's version; 0 in a database that has none of it. Simple queries, which a pooler never tears apart.
pub(super) async fn version(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    use sqlx::Row;
    let there =
        sqlx::raw_sql("SELECT to_regclass('cofferdam_schema')::text").fetch_one(&mut *connection).await?;
    if there.try_get_unchecked::<Option<String>, _>(0)?.is_none() {
        return Ok(0);
    }
    let row =
        sqlx::raw_sql("SELECT coalesce(max(version), 0) FROM cofferdam_schema").fetch_one(connection).await?;
    row.try_get_unchecked(0)
}
