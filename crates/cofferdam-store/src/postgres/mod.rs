//! The record in PostgreSQL, for many nodes. `open` is where to start, and `session` is what every operation goes through;
//! what is done with it is in `store/`.
//!
//! Every write is one transaction that first locks the run's row, so that events are numbered without gaps and a lease
//! is looked at and used in one piece. Nothing waits for anything else while a transaction is open.

mod check;
mod connecting;
mod door;
mod migrate;
mod open;
mod session;
mod statements;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;

pub(crate) use self::session::Session;

/// The record in PostgreSQL. Cloning gives another handle to the same connections.
#[derive(Debug, Clone)]
pub struct Postgres {
    shared: Arc<Shared>,
    /// How long an operation goes on trying while the database is away.
    patience: Duration,
}

#[derive(Debug)]
struct Shared {
    pool: PgPool,
    /// Whether statements may be kept prepared: behind a pooler the next one may reach another server.
    statements: Statements,
    losses: Arc<open::Losses>,
    #[expect(dead_code, reason = "it leads to the server as long as it is kept")]
    door: Option<door::Door>,
    waker: wake::Waker,
    listener: wake::Listener,
}

/// Whether statements are kept prepared from one operation to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statements {
    Kept,
    Forgotten,
}

impl Postgres {
    /// The same record, with operations that go on trying for so long while the database is away.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self { shared: Arc::clone(&self.shared), patience }
    }
}
