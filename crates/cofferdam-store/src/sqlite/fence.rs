//! Refuses writes of those who no longer hold the run.

use cofferdam_core::{RunId, RunState};
use rusqlite::{Connection, params};

use super::{optional, parse_state, uint};
use crate::error::Error;
use crate::fence::Held;
use crate::lease::Lease;

/// What is on record about the lease's run.
pub(super) fn held(transaction: &Connection, lease: &Lease) -> Result<Held, Error> {
    let run = &lease.attempt().run;
    let sql = "SELECT state, attempts, token FROM runs WHERE id = ?1";
    optional(transaction, sql, params![run.as_str()], |row| {
        Ok(Held {
            state: parse_state(run.as_str(), &row.get::<_, String>("state")?)?,
            attempts: uint(row.get("attempts")?),
            token: uint(row.get("token")?),
        })
    })?
    .ok_or_else(|| Error::NotFound { run: run.clone() })
}

/// Refuses unless the lease's attempt is under way.
pub(super) fn require_running(transaction: &Connection, lease: &Lease) -> Result<RunState, Error> {
    held(transaction, lease)?.require_running(lease)
}

/// The run's state, whoever holds it.
pub(super) fn state_of(transaction: &Connection, run: &RunId) -> Result<RunState, Error> {
    let sql = "SELECT state FROM runs WHERE id = ?1";
    let state: Option<String> = optional(transaction, sql, params![run.as_str()], |row| Ok(row.get(0)?))?;
    parse_state(run.as_str(), &state.ok_or_else(|| Error::NotFound { run: run.clone() })?)
}
