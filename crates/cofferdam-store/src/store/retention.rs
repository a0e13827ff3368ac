//! Forgetting what was kept long enough.

use super::Store;
use super::specs::last_run::is_needed_by_spec;
use crate::artifacts::ArtifactPlace;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::record::{Expired, Retention};
use crate::session::{Row, Session, Sql, values};
use crate::stored::parse;

/// How many runs one round looks at, so that nobody waits long for what it locks.
const RUNS_PER_ROUND: u32 = 100;

/// How many entries of the audit one round looks at.
const ENTRIES_PER_ROUND: u32 = 500;

macro_rules! old_runs {
    (accepted: $accepted:literal) => {
        concat!(
            "SELECT id FROM runs WHERE finished_at < ?1 AND NOT dead_letter AND NOT ",
            is_needed_by_spec!(accepted: $accepted),
            " ORDER BY finished_at LIMIT ?2"
        )
    };
}
/// Runs that another round looks at are left to it.
const OLD_RUNS: Sql = Sql::differs(old_runs!(accepted: "rowid"), old_runs!(accepted: "accepted"))
    .locking("FOR UPDATE SKIP LOCKED");
const WITH_EVENTS: Sql = Sql::same(
    "SELECT id FROM runs WHERE finished_at < ?1 \
     AND (SELECT count(*) FROM (SELECT 1 FROM events WHERE events.run = runs.id LIMIT 3) AS few) > 2 \
     ORDER BY finished_at LIMIT ?2",
)
.locking("FOR NO KEY UPDATE SKIP LOCKED");
const WITH_ARTIFACTS: Sql = Sql::same(
    "SELECT id FROM runs WHERE finished_at < ?1 \
     AND EXISTS (SELECT 1 FROM artifacts WHERE artifacts.run = runs.id) ORDER BY finished_at LIMIT ?2",
)
.locking("FOR NO KEY UPDATE SKIP LOCKED");
/// Not those of a run that has not ended. Two rounds do this one after the other: each counts anew what is left.
const FIRST_WITH_ARTIFACTS: Sql = Sql::same(
    "SELECT id FROM runs WHERE finished_at IS NOT NULL \
     AND EXISTS (SELECT 1 FROM artifacts WHERE artifacts.run = runs.id) ORDER BY finished_at LIMIT ?1",
)
.locking("FOR NO KEY UPDATE");
const ALL_BYTES: &str = "SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM artifacts";
/// Entries are numbered as they are written, so the oldest are the first; an index by time would cost every change. Where
/// clocks disagree, an old entry may wait for a younger one before it.
const FORGET_ENTRIES: &str =
    "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit ORDER BY seq LIMIT ?2) AND at < ?1";

impl Store {
    /// Forgets a part of what is older than it should be kept; call it again until nothing is left. Dead letters keep
    /// their runs, and so does a spec that is not put away its last one. The caller removes the files that are named.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn expire(&self, retention: &Retention) -> Result<Expired, Error> {
        let retention = *retention;
        let expired = self
            .write(async move |session| {
                let mut expired = Expired::default();
                for run in old(session, OLD_RUNS, retention.runs_before_ms).await? {
                    forget_artifacts(session, &run, retention.now_ms, &mut expired).await?;
                    // Its attempts, events and messages go with it.
                    session.execute("DELETE FROM runs WHERE id = ?1", values![&run]).await?;
                    expired.runs.push(parse(&run, "id", &run)?);
                }
                for run in old(session, WITH_EVENTS, retention.events_before_ms).await? {
                    let sql = "DELETE FROM events WHERE run = ?1 AND seq > 1 AND type <> 'run.finished'";
                    expired.events += session.execute(sql, values![&run]).await?;
                    session.execute("DELETE FROM turns WHERE run = ?1", values![&run]).await?;
                    let sql = "UPDATE runs SET events_removed_at = ?1 WHERE id = ?2";
                    session.execute(sql, values![retention.now_ms, &run]).await?;
                }
                for run in old(session, WITH_ARTIFACTS, retention.artifacts_before_ms).await? {
                    forget_artifacts(session, &run, retention.now_ms, &mut expired).await?;
                }
                if let Some(most) = retention.artifacts_most_bytes {
                    forget_beyond(session, most, retention.now_ms, &mut expired).await?;
                }
                if let Some(before_ms) = retention.audit_before_ms {
                    expired.audit =
                        session.execute(FORGET_ENTRIES, values![before_ms, ENTRIES_PER_ROUND]).await?;
                }
                Ok(expired)
            })
            .await?;
        failpoint("store.expire");
        Ok(expired)
    }
}

async fn old(session: &mut Session<'_>, which: Sql, before_ms: Option<u64>) -> Result<Vec<String>, Error> {
    let Some(before_ms) = before_ms else { return Ok(Vec::new()) };
    session.all(which, values![before_ms, RUNS_PER_ROUND], |row| row.first()).await
}

/// Forgets the files of a run, and says how many bytes they have.
async fn forget_artifacts(
    session: &mut Session<'_>,
    run: &str,
    now_ms: u64,
    expired: &mut Expired,
) -> Result<u64, Error> {
    let sql = "DELETE FROM artifacts WHERE run = ?1 RETURNING path, bytes";
    let read = |row: Row<'_>| {
        Ok((ArtifactPlace::from_bytes(&row.get::<Vec<u8>>("path")?), row.get::<u64>("bytes")?))
    };
    let forgotten = session.all(sql, values![run], read).await?;
    if !forgotten.is_empty() {
        let sql = "UPDATE runs SET files_removed_at = ?1 WHERE id = ?2";
        session.execute(sql, values![now_ms, run]).await?;
    }
    let (places, bytes): (Vec<_>, Vec<_>) = forgotten.into_iter().unzip();
    expired.artifacts.extend(places);
    Ok(bytes.into_iter().sum())
}

/// Forgets the files of the runs that ended first, until all files together take no more than this.
async fn forget_beyond(
    session: &mut Session<'_>,
    most: u64,
    now_ms: u64,
    expired: &mut Expired,
) -> Result<(), Error> {
    let mut all: u64 = session.one(ALL_BYTES, values![], |row| row.first()).await?;
    if all <= most {
        return Ok(());
    }
    let first: Vec<String> =
        session.all(FIRST_WITH_ARTIFACTS, values![RUNS_PER_ROUND], |row| row.first()).await?;
    // Counted once more, behind the locks: another node may just have done the same.
    all = session.one(ALL_BYTES, values![], |row| row.first()).await?;
    for run in first {
        if all <= most {
            break;
        }
        all = all.saturating_sub(forget_artifacts(session, &run, now_ms, expired).await?);
    }
    Ok(())
}
