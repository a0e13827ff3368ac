//! Refuses writes of those who no longer hold the run, and keeps others from writing about it meanwhile.

use cofferdam_core::{RunId, RunState};
use sqlx::Row;

use super::session::Session;
use super::{number, parse_state};
use crate::error::Error;
use crate::fence::Held;
use crate::lease::Lease;

/// What is on record about the lease's run. Nobody else writes about it until this transaction has ended.
pub(super) async fn held(session: &mut Session, lease: &Lease) -> Result<Held, Error> {
    let run = &lease.attempt().run;
    let row = session
        .query("SELECT state, attempts, token FROM runs WHERE id = $1 FOR NO KEY UPDATE")
        .bind(run.as_str())
        .fetch_optional(session.connection())
        .await?
        .ok_or_else(|| Error::NotFound { run: run.clone() })?;
    Ok(Held {
        state: parse_state(run.as_str(), row.try_get("state")?)?,
        attempts: number(&row, "attempts")?,
        token: number(&row, "token")?,
    })
}

/// Refuses unless the lease's attempt is under way.
pub(super) async fn require_running(session: &mut Session, lease: &Lease) -> Result<RunState, Error> {
    held(session, lease).await?.require_running(lease)
}

/// The run's state, whoever holds it. Nobody else writes about it until this transaction has ended.
pub(super) async fn state_of(session: &mut Session, run: &RunId) -> Result<RunState, Error> {
    let state: Option<String> = session
        .scalar("SELECT state FROM runs WHERE id = $1 FOR NO KEY UPDATE")
        .bind(run.as_str())
        .fetch_optional(session.connection())
        .await?;
    let state = state.ok_or_else(|| Error::NotFound { run: run.clone() })?;
    parse_state(run.as_str(), &state)
}
