//! Keeps a lease alive, and finds those that were not.

use cofferdam_core::{AttemptRef, RunState};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::fence::require_running;
use super::{Sqlite, begin, int, parse, uint};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::record::{LiveRun, ReservedRun};

const LIVE: &str = "SELECT id, attempts, lease_node, token, lease_expires_at_ms, claimable_by, lease_place \
                    FROM runs \
                    WHERE state = ?1 AND lease_expires_at_ms <= ?2 ORDER BY created_at, id";

impl Sqlite {
    pub(crate) async fn renew(&self, lease: &Lease, now_ms: u64, lease_ms: u64) -> Result<(), Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        require_running(&mut transaction, lease).await?;
        sqlx::query("UPDATE runs SET lease_expires_at_ms = ? WHERE id = ?")
            .bind(int(now_ms.saturating_add(lease_ms)))
            .bind(lease.attempt().run.as_str())
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        failpoint("store.renew");
        Ok(())
    }

    pub(crate) async fn live_runs(&self) -> Result<Vec<LiveRun>, Error> {
        self.live_until(i64::MAX).await
    }

    pub(crate) async fn expired(&self, now_ms: u64) -> Result<Vec<LiveRun>, Error> {
        self.live_until(int(now_ms)).await
    }

    pub(crate) async fn reserved_runs(&self) -> Result<Vec<ReservedRun>, Error> {
        let rows = sqlx::query(
            "SELECT id, claimable_by, place FROM runs WHERE state = ? AND claimable_by IS NOT NULL \
             ORDER BY created_at, id",
        )
        .bind(RunState::Queued.as_str())
        .fetch_all(self.readers())
        .await?;
        let read = |row: &SqliteRow| {
            let run: &str = row.try_get("id")?;
            let claimable_by = parse(run, "claimable_by", row.try_get("claimable_by")?)?;
            let place: Option<&str> = row.try_get("place")?;
            let place = place.map(|place| parse(run, "place", place)).transpose()?;
            Ok(ReservedRun { run: parse(run, "id", run)?, claimable_by, place })
        };
        rows.iter().map(read).collect()
    }

    async fn live_until(&self, last_ms: i64) -> Result<Vec<LiveRun>, Error> {
        let rows = sqlx::query(LIVE)
            .bind(RunState::Running.as_str())
            .bind(last_ms)
            .fetch_all(self.readers())
            .await?;
        rows.iter().map(read_live).collect()
    }
}

fn read_live(row: &SqliteRow) -> Result<LiveRun, Error> {
    let run: &str = row.try_get("id")?;
    let claimable_by: Option<&str> = row.try_get("claimable_by")?;
    let place: Option<&str> = row.try_get("lease_place")?;
    Ok(LiveRun {
        attempt: AttemptRef { run: parse(run, "id", run)?, number: row.try_get("attempts")? },
        node: parse(run, "lease_node", row.try_get("lease_node")?)?,
        token: uint(row.try_get("token")?),
        lease_expires_at_ms: uint(row.try_get("lease_expires_at_ms")?),
        claimable_by: claimable_by.map(|node| parse(run, "claimable_by", node)).transpose()?,
        place: place.map(|place| parse(run, "lease_place", place)).transpose()?,
    })
}
