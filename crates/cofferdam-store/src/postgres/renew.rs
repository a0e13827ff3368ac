//! Keeps a lease alive, and finds those that were not.

use cofferdam_core::AttemptRef;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::fence::require_running;
use super::{Postgres, count, int, number, parse};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::record::{LiveRun, ReservedRun};

const LIVE: &str = "SELECT id, attempts, lease_node, token, lease_expires_at_ms, claimable_by, lease_place \
                    FROM runs \
                    WHERE state = 'running' AND lease_expires_at_ms <= $1 ORDER BY created_at, id";

impl Postgres {
    pub(crate) async fn renew(&self, lease: &Lease, now_ms: u64, lease_ms: u64) -> Result<(), Error> {
        self.write(|mut session| async move {
            session.may_repeat();
            require_running(&mut session, lease).await?;
            session
                .query("UPDATE runs SET lease_expires_at_ms = $1 WHERE id = $2")
                .bind(int(now_ms.saturating_add(lease_ms)))
                .bind(lease.attempt().run.as_str())
                .execute(session.connection())
                .await?;
            session.done(())
        })
        .await?;
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
        let rows = self
            .read(|mut session| async move {
                Ok(session
                    .query(
                        "SELECT id, claimable_by, place FROM runs WHERE state = 'queued' \
                         AND claimable_by IS NOT NULL ORDER BY created_at, id",
                    )
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        let read = |row: &PgRow| {
            let run: &str = row.try_get("id")?;
            let claimable_by = parse(run, "claimable_by", row.try_get("claimable_by")?)?;
            let place: Option<&str> = row.try_get("place")?;
            let place = place.map(|place| parse(run, "place", place)).transpose()?;
            Ok(ReservedRun { run: parse(run, "id", run)?, claimable_by, place })
        };
        rows.iter().map(read).collect()
    }

    async fn live_until(&self, last_ms: i64) -> Result<Vec<LiveRun>, Error> {
        let rows = self
            .read(|mut session| async move {
                Ok(session.query(LIVE).bind(last_ms).fetch_all(session.connection()).await?)
            })
            .await?;
        rows.iter().map(read_live).collect()
    }
}

fn read_live(row: &PgRow) -> Result<LiveRun, Error> {
    let run: &str = row.try_get("id")?;
    let claimable_by: Option<&str> = row.try_get("claimable_by")?;
    let place: Option<&str> = row.try_get("lease_place")?;
    Ok(LiveRun {
        attempt: AttemptRef { run: parse(run, "id", run)?, number: count(row, "attempts")? },
        node: parse(run, "lease_node", row.try_get("lease_node")?)?,
        token: number(row, "token")?,
        lease_expires_at_ms: number(row, "lease_expires_at_ms")?,
        claimable_by: claimable_by.map(|node| parse(run, "claimable_by", node)).transpose()?,
        place: place.map(|place| parse(run, "lease_place", place)).transpose()?,
    })
}
