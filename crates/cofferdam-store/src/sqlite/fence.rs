//! Refuses writes of those who no longer hold the run.

use cofferdam_core::{RunId, RunState};
use sqlx::{Row, SqliteConnection};

use super::{parse_state, uint};
use crate::error::Error;
use crate::fence::Held;
use crate::lease::Lease;

/// What is on record about the lease's run.
pub(super) async fn held(transaction: &mut SqliteConnection, lease: &Lease) -> Result<Held, Error> {
    let run = &lease.attempt().run;
    let row = sqlx::query("SELECT state, attempts, token FROM runs WHERE id = ?")
        .bind(run.as_str())
        .fetch_optional(transaction)
        .await?
        .ok_or_else(|| Error::NotFound { run: run.clone() })?;
    Ok(Held {
        state: parse_state(run.as_str(), row.try_get("state")?)?,
        attempts: uint(row.try_get("attempts")?),
        token: uint(row.try_get("token")?),
    })
}

/// Refuses unless the lease's attempt is under way.
pub(super) async fn require_running(
    transaction: &mut SqliteConnection,
    lease: &Lease,
) -> Result<RunState, Error> {
    held(transaction, lease).await?.require_running(lease)
}

/// The run's state, whoever holds it.
pub(super) async fn state_of(transaction: &mut SqliteConnection, run: &RunId) -> Result<RunState, Error> {
    let state: Option<String> = sqlx::query_scalar("SELECT state FROM runs WHERE id = ?")
        .bind(run.as_str())
        .fetch_optional(transaction)
        .await?;
    let state = state.ok_or_else(|| Error::NotFound { run: run.clone() })?;
    parse_state(run.as_str(), &state)
}
