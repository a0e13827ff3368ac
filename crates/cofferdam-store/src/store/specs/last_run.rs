//! The last run of a spec says how the spec stands, and which policy the next run has: it stays on record.

use cofferdam_core::RunId;

use crate::error::Error;
use crate::session::{Session, Sql, values};

/// Whether a row of `runs` is the last run of a spec that is not put away.
macro_rules! is_needed_by_spec {
    (accepted: $accepted:literal) => {
        concat!(
            "(runs.spec IS NOT NULL AND EXISTS (SELECT 1 FROM specs WHERE specs.id = runs.spec AND NOT specs.archived) \
             AND NOT EXISTS (SELECT 1 FROM runs AS later WHERE later.spec = runs.spec AND later.",
            $accepted,
            " > runs.",
            $accepted,
            "))"
        )
    };
}
pub(in crate::store) use is_needed_by_spec;

/// Refuses if a spec needs this run.
pub(in crate::store) async fn refuse_if_needed(session: &mut Session<'_>, run: &RunId) -> Result<(), Error> {
    const NEEDED_BY: Sql = Sql::differs(
        concat!("SELECT spec FROM runs WHERE id = ?1 AND ", is_needed_by_spec!(accepted: "rowid")),
        concat!("SELECT spec FROM runs WHERE id = ?1 AND ", is_needed_by_spec!(accepted: "accepted")),
    );
    let spec =
        session.optional(NEEDED_BY, values![run], |row| row.parse(run.as_str(), "spec", "spec")).await?;
    match spec {
        Some(spec) => Err(Error::RunOfSpec { run: run.clone(), spec }),
        None => Ok(()),
    }
}
