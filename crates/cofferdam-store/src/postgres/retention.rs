//! Forgets what was kept long enough.

use super::session::Session;
use super::{Postgres, int, parse};
use crate::artifacts::ArtifactPlace;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::record::{Expired, Retention};

/// How many runs one round looks at, so that no transaction is open for long.
const RUNS_PER_ROUND: i64 = 100;

/// Runs that another round looks at are left to it.
const OLD_RUNS: &str = "SELECT id FROM runs WHERE finished_at < $1 AND NOT dead_letter \
     ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED";
const WITH_EVENTS: &str = "SELECT id FROM runs WHERE finished_at < $1 \
     AND (SELECT count(*) FROM (SELECT 1 FROM events WHERE events.run = runs.id LIMIT 3) AS few) > 2 \
     ORDER BY finished_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED";
const WITH_ARTIFACTS: &str = "SELECT id FROM runs WHERE finished_at < $1 \
     AND EXISTS (SELECT 1 FROM artifacts WHERE artifacts.run = runs.id) \
     ORDER BY finished_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED";

impl Postgres {
    pub(crate) async fn expire(&self, retention: &Retention) -> Result<Expired, Error> {
        let expired = self
            .write(|mut session| async move {
                let mut expired = Expired::default();
                for run in old(&mut session, OLD_RUNS, retention.runs_before_ms).await? {
                    expired.artifacts.extend(forget_artifacts(&mut session, &run).await?);
                    // Its attempts, events and messages go with it.
                    session
                        .query("DELETE FROM runs WHERE id = $1")
                        .bind(&run)
                        .execute(session.connection())
                        .await?;
                    expired.runs.push(parse(&run, "id", &run)?);
                }
                for run in old(&mut session, WITH_EVENTS, retention.events_before_ms).await? {
                    let forgotten = session
                        .query("DELETE FROM events WHERE run = $1 AND seq > 1 AND type <> 'run.finished'")
                        .bind(&run)
                        .execute(session.connection())
                        .await?;
                    expired.events += forgotten.rows_affected();
                }
                for run in old(&mut session, WITH_ARTIFACTS, retention.artifacts_before_ms).await? {
                    expired.artifacts.extend(forget_artifacts(&mut session, &run).await?);
                }
                session.done(expired)
            })
            .await?;
        failpoint("store.expire");
        Ok(expired)
    }
}

async fn old(
    session: &mut Session,
    which: &'static str,
    before_ms: Option<u64>,
) -> Result<Vec<String>, Error> {
    let Some(before_ms) = before_ms else { return Ok(Vec::new()) };
    Ok(session
        .scalar(which)
        .bind(int(before_ms))
        .bind(RUNS_PER_ROUND)
        .fetch_all(session.connection())
        .await?)
}

async fn forget_artifacts(session: &mut Session, run: &str) -> Result<Vec<ArtifactPlace>, Error> {
    let paths: Vec<Vec<u8>> = session
        .scalar("DELETE FROM artifacts WHERE run = $1 RETURNING path")
        .bind(run)
        .fetch_all(session.connection())
        .await?;
    Ok(paths.iter().map(|path| ArtifactPlace::from_bytes(path)).collect())
}
