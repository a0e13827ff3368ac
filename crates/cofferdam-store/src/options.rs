//! Where the record is.

use std::num::NonZeroU32;
use std::path::PathBuf;

use cofferdam_core::StoreUrl;

/// Where the record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreOptions {
    /// In this file.
    Sqlite(PathBuf),
    /// In a database of many nodes.
    Postgres(PostgresOptions),
}

/// How to reach a PostgreSQL database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Where it is.
    pub url: StoreUrl,
    /// Where to listen for wakes, if not there: past a pooler, which cannot carry them.
    pub listen_url: Option<StoreUrl>,
    /// What is between.
    pub pooler: Pooler,
    /// How many connections this process has at most, besides the one that listens.
    pub max_connections: NonZeroU32,
}

impl PostgresOptions {
    /// How many connections a process has unless somebody says otherwise.
    pub const MAX_CONNECTIONS: NonZeroU32 = NonZeroU32::new(10).expect("more than none");

    /// A database that is reached directly.
    #[must_use]
    pub fn at(url: StoreUrl) -> Self {
        Self { url, listen_url: None, pooler: Pooler::None, max_connections: Self::MAX_CONNECTIONS }
    }
}

/// What stands between us and the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pooler {
    /// Nothing, or a pooler that gives each client a server of its own.
    #[default]
    None,
    /// A pooler that gives each transaction whichever server is free.
    Transactions,
}
