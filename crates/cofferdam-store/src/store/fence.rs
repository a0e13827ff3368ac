//! Refuses writes of those who no longer hold the run, and keeps others from writing about it meanwhile.

use cofferdam_core::{AttemptRef, RunId, RunState};

use crate::error::Error;
use crate::fence::Held;
use crate::lease::Lease;
use crate::session::{Row, Session, Sql, values};

/// The run's row is locked until the transaction has ended.
const LOCK: &str = "FOR NO KEY UPDATE";

/// What is on record about a run. Nobody else writes about it until this transaction has ended.
async fn on_record(session: &mut Session<'_>, run: &RunId) -> Result<Held, Error> {
    const ON_RECORD: Sql = Sql::same("SELECT state, attempts, token FROM runs WHERE id = ?1").locking(LOCK);
    let read = |row: Row<'_>| {
        Ok(Held { state: row.state(run.as_str())?, attempts: row.get("attempts")?, token: row.get("token")? })
    };
    let found = session.optional(ON_RECORD, values![run], read).await?;
    found.ok_or_else(|| Error::NotFound { run: run.clone() })
}

/// What is on record about the lease's run.
pub(super) async fn held(session: &mut Session<'_>, lease: &Lease) -> Result<Held, Error> {
    on_record(session, &lease.attempt().run).await
}

/// Refuses unless the lease's attempt is under way.
pub(super) async fn require_running(session: &mut Session<'_>, lease: &Lease) -> Result<RunState, Error> {
    held(session, lease).await?.require_running(lease)
}

/// The run's state, whoever holds it.
pub(super) async fn state_of(session: &mut Session<'_>, run: &RunId) -> Result<RunState, Error> {
    Ok(on_record(session, run).await?.state)
}

/// Whether this is the run's present attempt, and has not ended. It stays so until this transaction has ended.
pub(super) async fn is_under_way(session: &mut Session<'_>, attempt: &AttemptRef) -> Result<bool, Error> {
    let held = on_record(session, &attempt.run).await?;
    Ok(held.state == RunState::Running && held.attempts == u64::from(attempt.number))
}
