//! The record in PostgreSQL, for many nodes. One file per group of operations; `open` is where to start, and `session`
//! is what every operation goes through.
//!
//! Every write is one transaction that first locks the run's row, so that events are numbered without gaps and a lease
//! is looked at and used in one piece. Nothing waits for anything else while a transaction is open.

mod adopt;
mod append;
mod artifacts;
mod audit;
mod cancel;
mod check;
mod claim;
mod door;
mod egress;
mod enqueue;
mod events;
mod fence;
mod finish;
mod keys;
mod letters;
mod messages;
mod migrate;
mod nodes;
mod open;
mod projects;
mod remove;
mod renew;
mod retention;
mod runs;
mod session;
mod slots;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgRow;
use sqlx::{ColumnIndex, Row};

use crate::error::Error;
use crate::stored::{from_json, int, parse, parse_state, to_json, uint};

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

    pub(crate) async fn ping(&self) -> Result<(), Error> {
        self.with_patience(Duration::ZERO)
            .read(|mut session| async move {
                session.query("SELECT 1").execute(session.connection()).await?;
                Ok(())
            })
            .await
    }
}

/// A count, such as of attempts.
fn count<I: ColumnIndex<PgRow>>(row: &PgRow, column: I) -> Result<u32, Error> {
    Ok(u32::try_from(row.try_get::<i64, _>(column)?).unwrap_or(u32::MAX))
}

/// A time or number.
fn number<I: ColumnIndex<PgRow>>(row: &PgRow, column: I) -> Result<u64, Error> {
    Ok(uint(row.try_get(column)?))
}

/// A time or number that need not be there.
fn some_number<I: ColumnIndex<PgRow>>(row: &PgRow, column: I) -> Result<Option<u64>, Error> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(uint))
}
