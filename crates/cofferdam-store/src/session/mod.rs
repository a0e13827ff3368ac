//! What an operation speaks to a database through, whichever it is: statements, values and rows.
//!
//! An operation is one async function over a [`Session`], written once. PostgreSQL answers each statement later; SQLite
//! answers at once, so that there the whole operation is driven on one thread without ever waiting (0027, 0028). Where the
//! databases differ, the difference has a name: [`Sql::differs`], [`Sql::locking`], [`Session::wait_in`],
//! [`Session::insert_events`], [`Session::insert_entry`].

mod row;
mod sql;
mod value;

use cofferdam_core::{NewEvent, RunId};
use cofferdam_mandate::Mandate;

pub(crate) use self::row::{Column, Row};
pub(crate) use self::sql::{Access, Sql};
pub(crate) use self::value::{PgQuery, Value, values};
use crate::error::{DatabaseError, Error};
use crate::page::Page;
use crate::stored::{to_json, without_nul};
use crate::{postgres, sqlite};

/// The connection of one operation. What is written through it is committed when the operation returns, and undone if it
/// fails.
pub(crate) enum Session<'s> {
    Sqlite(&'s mut sqlite::Session),
    Postgres(&'s mut postgres::Session),
}

/// A line in which transactions wait for each other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Line<'l> {
    /// Of those who claim, where a claim depends on what else is under way.
    Claims,
    /// Of those who send messages to one agent.
    Conversation(&'l str),
}

impl Session<'_> {
    /// Executes a statement. Gives the number of rows that it changed.
    pub(crate) async fn execute(&mut self, sql: impl Into<Sql>, values: &[Value<'_>]) -> Result<u64, Error> {
        let sql = sql.into();
        match self {
            Self::Sqlite(session) => session.execute(sql, values),
            Self::Postgres(session) => session.execute(sql, values).await,
        }
    }

    /// The first row, if there is one.
    pub(crate) async fn optional<T>(
        &mut self,
        sql: impl Into<Sql>,
        values: &[Value<'_>],
        read: impl FnOnce(Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let sql = sql.into();
        match self {
            Self::Sqlite(session) => session.optional(sql, values, read),
            Self::Postgres(session) => session.optional(sql, values, read).await,
        }
    }

    /// The one row that there must be.
    pub(crate) async fn one<T>(
        &mut self,
        sql: impl Into<Sql>,
        values: &[Value<'_>],
        read: impl FnOnce(Row<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let found = self.optional(sql, values, read).await?;
        found.ok_or_else(|| Error::Database(self.no_row()))
    }

    /// All rows.
    pub(crate) async fn all<T>(
        &mut self,
        sql: impl Into<Sql>,
        values: &[Value<'_>],
        read: impl FnMut(Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let sql = sql.into();
        match self {
            Self::Sqlite(session) => session.all(sql, values, read),
            Self::Postgres(session) => session.all(sql, values, read).await,
        }
    }

    /// The first rows, until they are as long together as a page may be. `read` says with each how long it is.
    ///
    /// SQLite reads a row when it is asked for it. PostgreSQL sends all of them at once, so that its statement has to end the page
    /// itself; it counts as `read` does.
    pub(crate) async fn page<T>(
        &mut self,
        sql: impl Into<Sql>,
        values: &[Value<'_>],
        read: impl FnMut(Row<'_>) -> Result<(T, usize), Error>,
    ) -> Result<Page<T>, Error> {
        let sql = sql.into();
        match self {
            Self::Sqlite(session) => session.page(sql, values, read),
            Self::Postgres(session) => session.page(sql, values, read).await,
        }
    }

    /// Says that doing the whole operation again changes nothing, so that nobody has to find out whether a commit that
    /// was not answered was made. SQLite answers every commit.
    pub(crate) fn may_repeat(&mut self) {
        match self {
            Self::Sqlite(_) => {}
            Self::Postgres(session) => session.may_repeat(),
        }
    }

    /// Waits until nobody before us in this line is at it, and keeps others waiting until this transaction has ended. In
    /// SQLite whoever writes is alone anyway.
    pub(crate) async fn wait_in(&mut self, line: Line<'_>) -> Result<(), Error> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(session) => session.wait_in(line).await,
        }
    }

    /// Whether nobody else writes while this transaction lasts.
    pub(crate) fn writes_alone(&self) -> bool {
        match self {
            Self::Sqlite(_) => true,
            Self::Postgres(_) => false,
        }
    }

    /// Gives events, of which there is one at least, the run's next numbers and stores them, with the entry of the audit if
    /// somebody's change is what they tell of. Returns the last number. In PostgreSQL that is one round trip, and the last
    /// event proves later that the transaction was committed.
    pub(crate) async fn insert_events(
        &mut self,
        run: &RunId,
        attempt: Option<u32>,
        events: &[&NewEvent],
        entry: Option<&Mandate>,
    ) -> Result<u64, Error> {
        match self {
            Self::Sqlite(session) => session.insert_events(run, attempt, events, entry),
            Self::Postgres(session) => session.insert_events(run, attempt, events, entry).await,
        }
    }

    /// Stores the entry of the audit for a change. In PostgreSQL it proves later that the transaction was committed, as an
    /// event does.
    pub(crate) async fn insert_entry(&mut self, entry: &Mandate) -> Result<(), Error> {
        match self {
            Self::Sqlite(session) => session.insert_entry(entry),
            Self::Postgres(session) => session.insert_entry(entry).await,
        }
    }

    fn no_row(&self) -> DatabaseError {
        match self {
            Self::Sqlite(_) => rusqlite::Error::QueryReturnedNoRows.into(),
            Self::Postgres(_) => sqlx::Error::RowNotFound.into(),
        }
    }
}

/// What is written down of a mandate: `at`, `actor`, `action`, `subject` and `data` of the audit, in this order.
pub(crate) fn entry_values(mandate: &Mandate) -> [Value<'_>; 5] {
    [
        mandate.at_ms().into(),
        without_nul(mandate.actor()).into(),
        mandate.action().as_str().into(),
        without_nul(mandate.subject()).into(),
        to_json(mandate.data()).into(),
    ]
}
