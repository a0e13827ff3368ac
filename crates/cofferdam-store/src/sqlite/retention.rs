//! Forgets what was kept long enough.

use rusqlite::{Connection, params};

use super::{Sqlite, all, execute, int, parse};
use crate::artifacts::ArtifactPlace;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::record::{Expired, Retention};

/// How many runs one round looks at, so that nobody waits long for the write lock.
const RUNS_PER_ROUND: u32 = 100;

const OLD_RUNS: &str =
    "SELECT id FROM runs WHERE finished_at < ?1 AND dead_letter = 0 ORDER BY finished_at LIMIT ?2";
const WITH_EVENTS: &str = "SELECT id FROM runs WHERE finished_at < ?1 \
     AND (SELECT count(*) FROM events WHERE events.run = runs.id) > 2 ORDER BY finished_at LIMIT ?2";
const WITH_ARTIFACTS: &str = "SELECT id FROM runs WHERE finished_at < ?1 \
     AND EXISTS (SELECT 1 FROM artifacts WHERE artifacts.run = runs.id) ORDER BY finished_at LIMIT ?2";

impl Sqlite {
    pub(crate) async fn expire(&self, retention: &Retention) -> Result<Expired, Error> {
        let retention = *retention;
        let expired = self
            .write(move |transaction| {
                let mut expired = Expired::default();
                for run in old(transaction, OLD_RUNS, retention.runs_before_ms)? {
                    expired.artifacts.extend(forget_artifacts(transaction, &run)?);
                    // Its attempts, events and messages go with it.
                    execute(transaction, "DELETE FROM runs WHERE id = ?", params![run])?;
                    expired.runs.push(parse(&run, "id", &run)?);
                }
                for run in old(transaction, WITH_EVENTS, retention.events_before_ms)? {
                    let sql = "DELETE FROM events WHERE run = ?1 AND seq > 1 AND type <> 'run.finished'";
                    expired.events += execute(transaction, sql, params![run])? as u64;
                }
                for run in old(transaction, WITH_ARTIFACTS, retention.artifacts_before_ms)? {
                    expired.artifacts.extend(forget_artifacts(transaction, &run)?);
                }
                Ok(expired)
            })
            .await?;
        failpoint("store.expire");
        Ok(expired)
    }
}

fn old(transaction: &Connection, which: &'static str, before_ms: Option<u64>) -> Result<Vec<String>, Error> {
    let Some(before_ms) = before_ms else { return Ok(Vec::new()) };
    all(transaction, which, params![int(before_ms), RUNS_PER_ROUND], |row| Ok(row.get(0)?))
}

fn forget_artifacts(transaction: &Connection, run: &str) -> Result<Vec<ArtifactPlace>, Error> {
    all(transaction, "DELETE FROM artifacts WHERE run = ? RETURNING path", params![run], |row| {
        Ok(ArtifactPlace::from_bytes(&row.get::<_, Vec<u8>>(0)?))
    })
}
