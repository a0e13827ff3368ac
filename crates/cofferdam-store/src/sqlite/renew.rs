//! Keeps a lease alive, and finds those that were not.

use cofferdam_core::{AttemptRef, RunState};
use rusqlite::{Row, params};

use super::fence::require_running;
use super::{Sqlite, all, execute, int, parse, uint};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::record::{LiveRun, ReservedRun};

const LIVE: &str = "SELECT id, attempts, lease_node, token, lease_expires_at_ms, claimable_by, lease_place \
                    FROM runs \
                    WHERE state = ?1 AND lease_expires_at_ms <= ?2 ORDER BY created_at, id";

impl Sqlite {
    pub(crate) async fn renew(&self, lease: &Lease, now_ms: u64, lease_ms: u64) -> Result<(), Error> {
        let lease = lease.clone();
        self.write(move |transaction| {
            require_running(transaction, &lease)?;
            execute(
                transaction,
                "UPDATE runs SET lease_expires_at_ms = ? WHERE id = ?",
                params![int(now_ms.saturating_add(lease_ms)), lease.attempt().run.as_str()],
            )
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
        let sql = "SELECT id, claimable_by, place FROM runs WHERE state = ? AND claimable_by IS NOT NULL \
                   ORDER BY created_at, id";
        self.read(move |connection| {
            all(connection, sql, params![RunState::Queued.as_str()], |row| {
                let run: String = row.get("id")?;
                let claimable_by = parse(&run, "claimable_by", &row.get::<_, String>("claimable_by")?)?;
                let place: Option<String> = row.get("place")?;
                let place = place.map(|place| parse(&run, "place", &place)).transpose()?;
                Ok(ReservedRun { run: parse(&run, "id", &run)?, claimable_by, place })
            })
        })
        .await
    }

    async fn live_until(&self, last_ms: i64) -> Result<Vec<LiveRun>, Error> {
        self.read(move |connection| {
            all(connection, LIVE, params![RunState::Running.as_str(), last_ms], read_live)
        })
        .await
    }
}

fn read_live(row: &Row<'_>) -> Result<LiveRun, Error> {
    let run: String = row.get("id")?;
    let claimable_by: Option<String> = row.get("claimable_by")?;
    let place: Option<String> = row.get("lease_place")?;
    Ok(LiveRun {
        attempt: AttemptRef { run: parse(&run, "id", &run)?, number: row.get("attempts")? },
        node: parse(&run, "lease_node", &row.get::<_, String>("lease_node")?)?,
        token: uint(row.get("token")?),
        lease_expires_at_ms: uint(row.get("lease_expires_at_ms")?),
        claimable_by: claimable_by.map(|node| parse(&run, "claimable_by", &node)).transpose()?,
        place: place.map(|place| parse(&run, "lease_place", &place)).transpose()?,
    })
}
