//! Where the record of runs is: the key `store`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Count, StoreUrl};

/// Connections of one process to the database.
pub type StoreConnections = Count<1, 1_000>;

/// The record of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// The PostgreSQL database that many nodes share, such as `postgres://cofferdam@db.example/cofferdam`. Without it the
    /// record is a file in the state folder. A password in it is shown nowhere; `COFFERDAM_STORE_URL` goes before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<StoreUrl>,
    /// Where to listen for changes, if `url` leads to a pooler: the database itself. Without it nodes look for
    /// changes from time to time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen_url: Option<StoreUrl>,
    /// Whether `url` leads to a pooler that gives each transaction another server, such as PgBouncer with
    /// `pool_mode = transaction`.
    pub pooler: StorePooler,
    /// The most connections that one process has.
    pub max_connections: StoreConnections,
}

/// What is between a node and the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StorePooler {
    /// Nothing, or a pooler that gives each client a server of its own.
    #[default]
    None,
    /// A pooler that gives each transaction whichever server is free.
    Transaction,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            url: None,
            listen_url: None,
            pooler: StorePooler::None,
            max_connections: StoreConnections::of(10),
        }
    }
}
