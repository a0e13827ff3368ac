//! The connection of one operation.

use std::ops::Deref;

use cofferdam_core::{NewEvent, RunId};
use cofferdam_mandate::Mandate;
use rusqlite::{Connection, params, params_from_iter};
use tokio::sync::OwnedMutexGuard;

use super::readers::Lent;
use crate::error::Error;
use crate::page::Page;
use crate::session::{Row, Sql, Value, entry_values};
use crate::stored::{int, to_json, uint};

/// A connection, for the length of one operation. Dropping it undoes what was written and not committed.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Held,
}

#[derive(Debug)]
enum Held {
    Writer(OwnedMutexGuard<Connection>),
    Reader(Lent),
}

impl Deref for Session {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match &self.connection {
            Held::Writer(connection) => connection,
            Held::Reader(connection) => connection,
        }
    }
}

impl Session {
    /// Holds the write lock from the beginning.
    pub(super) fn writing(connection: OwnedMutexGuard<Connection>) -> Result<Self, Error> {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        Ok(Self { connection: Held::Writer(connection) })
    }

    /// Each statement sees what is committed when it begins.
    pub(super) fn reading(connection: Lent) -> Self {
        Self { connection: Held::Reader(connection) }
    }

    pub(super) fn commit(self) -> Result<(), Error> {
        Ok(self.execute_batch("COMMIT")?)
    }

    pub(crate) fn execute(&self, sql: Sql, values: &[Value<'_>]) -> Result<u64, Error> {
        let changed = self.prepare_cached(sql.for_sqlite())?.execute(params_from_iter(values))?;
        Ok(changed as u64)
    }

    pub(crate) fn optional<T>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
        read: impl FnOnce(Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let mut statement = self.prepare_cached(sql.for_sqlite())?;
        let mut rows = statement.query(params_from_iter(values))?;
        rows.next()?.map(|row| read(Row::Sqlite(row))).transpose()
    }

    pub(crate) fn all<T>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
        mut read: impl FnMut(Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut statement = self.prepare_cached(sql.for_sqlite())?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(Row::Sqlite(row))?);
        }
        Ok(found)
    }

    pub(crate) fn page<T>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
        mut read: impl FnMut(Row<'_>) -> Result<(T, usize), Error>,
    ) -> Result<Page<T>, Error> {
        let mut statement = self.prepare_cached(sql.for_sqlite())?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut page = Page::default();
        while !page.is_long() {
            let Some(row) = rows.next()? else { break };
            page.push(read(Row::Sqlite(row))?);
        }
        Ok(page)
    }

    pub(crate) fn insert_events(
        &self,
        run: &RunId,
        attempt: Option<u32>,
        events: &[&NewEvent],
        entry: Option<&Mandate>,
    ) -> Result<u64, Error> {
        let count = events.len() as u64;
        let latest_ms = events.iter().map(|event| event.at_ms).max().unwrap_or_default();
        let last: i64 = self
            .prepare_cached(
                "UPDATE runs SET last_seq = last_seq + ?2, updated_at = max(updated_at, ?3) WHERE id = ?1 \
                 RETURNING last_seq",
            )?
            .query_row(params![run.as_str(), int(count), int(latest_ms)], |row| row.get(0))?;
        let mut insert = self.prepare_cached(
            "INSERT INTO events (run, seq, at, type, attempt, worker_seq, data) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        for (seq, event) in (uint(last) + 1 - count..).zip(events) {
            insert.execute(params![
                run.as_str(),
                int(seq),
                int(event.at_ms),
                event.event_type.as_str(),
                attempt,
                event.worker_seq.map(int),
                to_json(&event.data),
            ])?;
        }
        if let Some(entry) = entry {
            self.insert_entry(entry)?;
        }
        Ok(uint(last))
    }

    pub(crate) fn insert_entry(&self, entry: &Mandate) -> Result<(), Error> {
        let sql = "INSERT INTO audit (at, actor, action, subject, data) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.prepare_cached(sql)?.execute(params_from_iter(&entry_values(entry)))?;
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SQLite has done so itself where a full disk made the transaction fail.
        if !self.is_autocommit() {
            let _ = self.execute_batch("ROLLBACK");
        }
    }
}
