//! Specs: what is wanted, what each phase brought, and the runs that work on it. Where a spec stands is never stored.
//!
//! Whoever changes a spec locks its row first, so that the live run, the revision and the phases that are read after that
//! stay as they are. Whoever writes under a lease has locked the run before; nobody locks them the other way round.

mod create;
mod decide;
mod execute;
pub(super) mod last_run;
mod progress;
mod read;
mod record_phase;
mod update;
mod versions;

use cofferdam_core::{Phase, RunId, Spec, SpecId};

use crate::error::Error;
use crate::session::{Session, Sql, values};
use crate::stored::parse;

/// The spec as it is. Nobody else changes it, or starts a run for it, until this transaction has ended.
async fn locked(session: &mut Session<'_>, id: &SpecId) -> Result<Spec, Error> {
    const LOCK: Sql = Sql::same("SELECT id FROM specs WHERE id = ?1").locking("FOR NO KEY UPDATE");
    let found = session.optional(LOCK, values![id], |row| row.first::<String>()).await?;
    let spec = match found {
        // A statement of its own: it sees what was committed while we waited for the lock.
        Some(_) => read::one(session, id).await?,
        None => None,
    };
    spec.ok_or_else(|| Error::NoSuchSpec { spec: id.clone() })
}

/// Counts a change.
async fn bump(session: &mut Session<'_>, id: &SpecId, now_ms: u64) -> Result<(), Error> {
    let sql = "UPDATE specs SET revision = revision + 1, \
               updated_at = CASE WHEN updated_at < ?2 THEN ?2 ELSE updated_at END WHERE id = ?1";
    session.execute(sql, values![id, now_ms]).await?;
    Ok(())
}

/// Opens phases: nothing of them counts any more. What they brought can still be read.
async fn open_phases(
    session: &mut Session<'_>,
    id: &SpecId,
    which: impl Fn(Phase) -> bool,
    now_ms: u64,
) -> Result<(), Error> {
    const OPEN: Sql = Sql::differs(
        "UPDATE spec_phases SET state = 'open', tries = 0, reasons = '[]', decision = NULL, updated_at = ?3 \
         WHERE spec = ?1 AND phase IN (SELECT value FROM json_each(?2))",
        "UPDATE spec_phases SET state = 'open', tries = 0, reasons = '[]', decision = NULL, updated_at = ?3 \
         WHERE spec = ?1 AND phase = ANY(?2)",
    );
    let phases: Vec<String> =
        Phase::ALL.iter().filter(|&&phase| which(phase)).map(|phase| phase.as_str().to_owned()).collect();
    session.execute(OPEN, values![id, Some(phases), now_ms]).await?;
    Ok(())
}

/// The spec that a run works on.
async fn spec_of(session: &mut Session<'_>, run: &RunId) -> Result<SpecId, Error> {
    let sql = "SELECT spec FROM runs WHERE id = ?1";
    let found = session.optional(sql, values![run], |row| row.first::<Option<String>>()).await?;
    let spec = found.ok_or_else(|| Error::NotFound { run: run.clone() })?;
    let unreadable = || Error::Unreadable { run: run.to_string(), what: "spec" };
    parse(run.as_str(), "spec", &spec.ok_or_else(unreadable)?)
}
