//! Refuses writes of those who no longer hold the run.

use cofferdam_core::{RunId, RunState};
use sqlx::{Row, SqliteConnection};

use super::{int, parse_state};
use crate::error::Error;
use crate::lease::Lease;

/// The run's state, if this lease is the newest there was.
pub(super) async fn state_under(
    transaction: &mut SqliteConnection,
    lease: &Lease,
) -> Result<RunState, Error> {
    let attempt = lease.attempt();
    let row = sqlx::query("SELECT state, attempts, token FROM runs WHERE id = ?")
        .bind(attempt.run.as_str())
        .fetch_optional(transaction)
        .await?
        .ok_or_else(|| Error::NotFound { run: attempt.run.clone() })?;
    let newest = row.try_get::<i64, _>("token")? == int(lease.token())
        && row.try_get::<u32, _>("attempts")? == attempt.number;
    if !newest {
        return Err(stale(lease));
    }
    parse_state(attempt.run.as_str(), row.try_get("state")?)
}

/// Refuses unless the lease's attempt is under way.
pub(super) async fn require_running(
    transaction: &mut SqliteConnection,
    lease: &Lease,
) -> Result<RunState, Error> {
    match state_under(transaction, lease).await? {
        RunState::Running => Ok(RunState::Running),
        RunState::Queued => Err(stale(lease)),
        state => Err(Error::AlreadyFinal { run: lease.attempt().run.clone(), state }),
    }
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

pub(super) fn stale(lease: &Lease) -> Error {
    Error::StaleLease { run: lease.attempt().run.clone(), attempt: lease.attempt().number }
}
