//! What is given to a statement.

use std::borrow::Cow;

use cofferdam_core::{AgentName, KeyId, Lane, NodeId, OwnerName, PlaceId, ProjectId, RunId, RunState};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use crate::stored::{int, to_json};

/// A value of a statement, of a type that both databases have. What need not be there still has its type: PostgreSQL asks
/// for it.
#[derive(Debug, Clone)]
pub(crate) enum Value<'v> {
    Integer(Option<i64>),
    Text(Option<Cow<'v, str>>),
    Bool(bool),
    Bytes(&'v [u8]),
    /// A list of texts: an array in PostgreSQL, JSON in SQLite.
    Texts(Option<Vec<String>>),
}

/// The values of a statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::session::Value::from($value)),*] };
}
pub(crate) use values;

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Integer(Some(value)) => ToSqlOutput::from(*value),
            Self::Text(Some(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Bool(value) => ToSqlOutput::from(*value),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Self::Texts(Some(texts)) => ToSqlOutput::from(to_json(texts)),
            Self::Integer(None) | Self::Text(None) | Self::Texts(None) => {
                ToSqlOutput::Borrowed(ValueRef::Null)
            }
        })
    }
}

/// A statement of PostgreSQL with its values.
pub(crate) type PgQuery<'q> = Query<'q, sqlx::Postgres, PgArguments>;

impl<'v> Value<'v> {
    pub(crate) fn bind(&'v self, query: PgQuery<'v>) -> PgQuery<'v> {
        match self {
            Self::Integer(value) => query.bind(*value),
            Self::Text(text) => query.bind(text.as_deref()),
            Self::Bool(value) => query.bind(*value),
            Self::Bytes(bytes) => query.bind(*bytes),
            Self::Texts(texts) => query.bind(texts.as_deref()),
        }
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Self::Text(Some(Cow::Borrowed(text)))
    }
}

impl<'v> From<&'v String> for Value<'v> {
    fn from(text: &'v String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Some(Cow::Owned(text)))
    }
}

impl<'v> From<Cow<'v, str>> for Value<'v> {
    fn from(text: Cow<'v, str>) -> Self {
        Self::Text(Some(text))
    }
}

impl<'v> From<Option<&'v str>> for Value<'v> {
    fn from(text: Option<&'v str>) -> Self {
        Self::Text(text.map(Cow::Borrowed))
    }
}

impl From<Option<String>> for Value<'_> {
    fn from(text: Option<String>) -> Self {
        Self::Text(text.map(Cow::Owned))
    }
}

impl From<RunState> for Value<'_> {
    fn from(state: RunState) -> Self {
        Self::from(state.as_str())
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Self::Integer(Some(int(value)))
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Integer(Some(value.into()))
    }
}

impl From<Option<u64>> for Value<'_> {
    fn from(value: Option<u64>) -> Self {
        Self::Integer(value.map(int))
    }
}

impl From<Option<u32>> for Value<'_> {
    fn from(value: Option<u32>) -> Self {
        Self::Integer(value.map(i64::from))
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<'v> From<&'v [u8]> for Value<'v> {
    fn from(bytes: &'v [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Option<Vec<String>>> for Value<'_> {
    fn from(texts: Option<Vec<String>>) -> Self {
        Self::Texts(texts)
    }
}

macro_rules! names {
    ($($name:ty),*) => {$(
        impl<'v> From<&'v $name> for Value<'v> {
            fn from(name: &'v $name) -> Self {
                Self::from(name.as_str())
            }
        }

        impl<'v> From<Option<&'v $name>> for Value<'v> {
            fn from(name: Option<&'v $name>) -> Self {
                Self::from(name.map(<$name>::as_str))
            }
        }
    )*};
}
names!(AgentName, KeyId, Lane, NodeId, OwnerName, PlaceId, ProjectId, RunId);
