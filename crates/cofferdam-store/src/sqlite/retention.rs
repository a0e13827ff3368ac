//! Forgets what was kept long enough.

use sqlx::SqliteConnection;

use super::{Sqlite, begin, int, parse};
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
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        let mut expired = Expired::default();
        for run in old(&mut transaction, OLD_RUNS, retention.runs_before_ms).await? {
            expired.artifacts.extend(forget_artifacts(&mut transaction, &run).await?);
            // Its attempts, events and messages go with it.
            sqlx::query("DELETE FROM runs WHERE id = ?").bind(&run).execute(&mut *transaction).await?;
            expired.runs.push(parse(&run, "id", &run)?);
        }
        for run in old(&mut transaction, WITH_EVENTS, retention.events_before_ms).await? {
            let forgotten =
                sqlx::query("DELETE FROM events WHERE run = ?1 AND seq > 1 AND type <> 'run.finished'")
                    .bind(&run)
                    .execute(&mut *transaction)
                    .await?;
            expired.events += forgotten.rows_affected();
        }
        for run in old(&mut transaction, WITH_ARTIFACTS, retention.artifacts_before_ms).await? {
            expired.artifacts.extend(forget_artifacts(&mut transaction, &run).await?);
        }
        transaction.commit().await?;
        failpoint("store.expire");
        Ok(expired)
    }
}

async fn old(
    transaction: &mut SqliteConnection,
    which: &'static str,
    before_ms: Option<u64>,
) -> Result<Vec<String>, Error> {
    let Some(before_ms) = before_ms else { return Ok(Vec::new()) };
    Ok(sqlx::query_scalar(which).bind(int(before_ms)).bind(RUNS_PER_ROUND).fetch_all(transaction).await?)
}

async fn forget_artifacts(
    transaction: &mut SqliteConnection,
    run: &str,
) -> Result<Vec<ArtifactPlace>, Error> {
    let paths: Vec<Vec<u8>> = sqlx::query_scalar("DELETE FROM artifacts WHERE run = ? RETURNING path")
        .bind(run)
        .fetch_all(transaction)
        .await?;
    Ok(paths.iter().map(|path| ArtifactPlace::from_bytes(path)).collect())
}
