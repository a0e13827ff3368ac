//! What is given to a statement.

use std::borrow::Cow;

use cofferdam_core::{
    AgentName, KeyId, Lane, NodeId, OwnerName, PlaceId, ProjectId, RunId, RunState, SpecId,
};
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
    Real(Option<f64>),
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
            Self::Real(Some(value)) => ToSqlOutput::from(*value),
            Self::Text(Some(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Bool(value) => ToSqlOutput::from(*value),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Self::Texts(Some(texts)) => ToSqlOutput::from(to_json(texts)),
            Self::Integer(None) | Self::Real(None) | Self::Text(None) | Self::Texts(None) => {
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
            Self::Real(value) => query.bind(*value),
            Self::Text(text) => query.bind(text.as_deref()),
            Self::Bool(value) => query.bind(*value),
            Self::Bytes(bytes) => query.bind(*bytes),
            Self::Texts(texts) => query.bind(texts.as_deref()),
        }
    }
}

/// What becomes which value.
macro_rules! made_from {
    ($($given:ty => |$value:ident| $made:expr;)+) => { $(
        impl<'v> From<$given> for Value<'v> {
            fn from($value: $given) -> Self {
                $made
            }
        }
    )+ };
}
made_from! {
    &'v str => |text| Self::Text(Some(Cow::Borrowed(text)));
    &'v String => |text| Self::from(text.as_str());
    String => |text| Self::Text(Some(Cow::Owned(text)));
    Cow<'v, str> => |text| Self::Text(Some(text));
    Option<&'v str> => |text| Self::Text(text.map(Cow::Borrowed));
    Option<String> => |text| Self::Text(text.map(Cow::Owned));
    RunState => |state| Self::from(state.as_str());
    i64 => |value| Self::Integer(Some(value));
    u64 => |value| Self::Integer(Some(int(value)));
    u32 => |value| Self::Integer(Some(value.into()));
    Option<u64> => |value| Self::Integer(value.map(int));
    Option<u32> => |value| Self::Integer(value.map(i64::from));
    Option<f64> => |value| Self::Real(value);
    bool => |value| Self::Bool(value);
    &'v [u8] => |bytes| Self::Bytes(bytes);
    Option<Vec<String>> => |texts| Self::Texts(texts);
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
names!(AgentName, KeyId, Lane, NodeId, OwnerName, PlaceId, ProjectId, RunId, SpecId);
