//! What a statement answers.

use std::str::FromStr;

use cofferdam_core::RunState;
use rusqlite::RowIndex;
use serde::de::DeserializeOwned;
use sqlx::postgres::PgRow;
use sqlx::{ColumnIndex, Row as _};

use crate::error::Error;
use crate::stored::{from_json, parse, parse_state, uint};

/// A row of an answer.
#[derive(Clone, Copy)]
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r PgRow),
}

impl Row<'_> {
    /// The value of a column.
    pub(crate) fn get<T: Column>(&self, column: &str) -> Result<T, Error> {
        match self {
            Self::Sqlite(row) => T::of_sqlite(row, column),
            Self::Postgres(row) => T::of_postgres(row, column),
        }
    }

    /// The value of the first column, which may have no name.
    pub(crate) fn first<T: Column>(&self) -> Result<T, Error> {
        match self {
            Self::Sqlite(row) => T::of_sqlite(row, 0),
            Self::Postgres(row) => T::of_postgres(row, 0),
        }
    }

    /// How long a text is; 0 where there is none.
    pub(crate) fn bytes(&self, column: &str) -> Result<usize, Error> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(column)?.as_bytes().map_or(0, <[u8]>::len)),
            Self::Postgres(row) => Ok(row.try_get_raw(column)?.as_bytes().map_or(0, <[u8]>::len)),
        }
    }

    /// An id or name. `run` and `what` say what could not be read.
    pub(crate) fn parse<T: FromStr>(&self, run: &str, what: &'static str, column: &str) -> Result<T, Error> {
        parse(run, what, &self.get::<String>(column)?)
    }

    /// An id or name that need not be there.
    pub(crate) fn parse_some<T: FromStr>(
        &self,
        run: &str,
        what: &'static str,
        column: &str,
    ) -> Result<Option<T>, Error> {
        self.get::<Option<String>>(column)?.map(|text| parse(run, what, &text)).transpose()
    }

    /// A value that is kept as JSON.
    pub(crate) fn json<T: DeserializeOwned>(
        &self,
        run: &str,
        what: &'static str,
        column: &str,
    ) -> Result<T, Error> {
        from_json(run, what, &self.get::<String>(column)?)
    }

    /// A value that is kept as JSON and need not be there.
    pub(crate) fn json_some<T: DeserializeOwned>(
        &self,
        run: &str,
        what: &'static str,
        column: &str,
    ) -> Result<Option<T>, Error> {
        self.get::<Option<String>>(column)?.map(|text| from_json(run, what, &text)).transpose()
    }

    /// A run's state, in the column of this name.
    pub(crate) fn state(&self, run: &str) -> Result<RunState, Error> {
        parse_state(run, &self.get::<String>("state")?)
    }
}

/// What a column can be read as.
pub(crate) trait Column: Sized {
    fn of_sqlite(row: &rusqlite::Row<'_>, index: impl RowIndex) -> Result<Self, Error>;
    fn of_postgres(row: &PgRow, index: impl ColumnIndex<PgRow>) -> Result<Self, Error>;
}

macro_rules! as_the_databases_do {
    ($($kind:ty),*) => {$(
        impl Column for $kind {
            fn of_sqlite(row: &rusqlite::Row<'_>, index: impl RowIndex) -> Result<Self, Error> {
                Ok(row.get(index)?)
            }

            fn of_postgres(row: &PgRow, index: impl ColumnIndex<PgRow>) -> Result<Self, Error> {
                Ok(row.try_get(index)?)
            }
        }
    )*};
}
as_the_databases_do!(String, Option<String>, i64, Option<i64>, Option<f64>, bool, Vec<u8>);

/// The databases' integers are signed and 64 bits wide.
macro_rules! from_integers {
    ($($kind:ty as $stored:ty: $read:expr),*) => {$(
        impl Column for $kind {
            fn of_sqlite(row: &rusqlite::Row<'_>, index: impl RowIndex) -> Result<Self, Error> {
                <$stored>::of_sqlite(row, index).map($read)
            }

            fn of_postgres(row: &PgRow, index: impl ColumnIndex<PgRow>) -> Result<Self, Error> {
                <$stored>::of_postgres(row, index).map($read)
            }
        }
    )*};
}
from_integers!(
    u64 as i64: uint,
    Option<u64> as Option<i64>: |value| value.map(uint),
    u32 as i64: count,
    Option<u32> as Option<i64>: |value| value.map(count)
);

fn count(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(if value < 0 { 0 } else { u32::MAX })
}
