//! Statements, each prepared once for a connection.

use rusqlite::{Connection, Params, Row};

use crate::error::Error;

/// Executes a statement. Gives the number of rows that it changed.
pub(super) fn execute(connection: &Connection, sql: &str, params: impl Params) -> Result<usize, Error> {
    Ok(connection.prepare_cached(sql)?.execute(params)?)
}

/// The one row that there must be.
pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    optional(connection, sql, params, read)?.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
}

/// The first row, if there is one.
pub(super) fn optional<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// All rows.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_and_then(params, read)?.collect()
}
