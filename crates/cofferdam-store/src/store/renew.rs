//! Keeps a lease alive, and finds those that were not.

use cofferdam_core::AttemptRef;

use super::Store;
use super::fence::require_running;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::record::{LiveRun, ReservedRun};
use crate::session::{Row, values};
use crate::stored::parse;

impl Store {
    /// Keeps a lease alive. An expired one that nobody took may be renewed: a laptop that slept.
    ///
    /// # Errors
    /// [`Error::StaleLease`] if somebody took the run or the attempt is over.
    pub async fn renew(&self, lease: &Lease, now_ms: u64, lease_ms: u64) -> Result<(), Error> {
        let lease = lease.clone();
        self.write(async move |session| {
            session.may_repeat();
            require_running(session, &lease).await?;
            let sql = "UPDATE runs SET lease_expires_at_ms = ?1 WHERE id = ?2";
            session.execute(sql, values![now_ms.saturating_add(lease_ms), &lease.attempt().run]).await
        })
        .await?;
        failpoint("store.renew");
        Ok(())
    }

    /// Every run that is under way, whether or not its lease has expired.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn live_runs(&self) -> Result<Vec<LiveRun>, Error> {
        self.expired(u64::MAX).await
    }

    /// The runs under way whose lease has expired. What becomes of them is for recovery to decide: adopt, then
    /// retry or finish.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn expired(&self, now_ms: u64) -> Result<Vec<LiveRun>, Error> {
        const SQL: &str = "SELECT id, attempts, lease_node, token, lease_expires_at_ms, claimable_by, lease_place FROM runs \
                   WHERE state = 'running' AND lease_expires_at_ms <= ?1 ORDER BY created_at, id";
        self.read(async move |session| session.all(SQL, values![now_ms], read_live).await).await
    }

    /// Queued runs that only one process may claim.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn reserved_runs(&self) -> Result<Vec<ReservedRun>, Error> {
        const SQL: &str = "SELECT id, claimable_by, place FROM runs WHERE state = 'queued' AND claimable_by IS NOT NULL \
                   ORDER BY created_at, id";
        self.read(async move |session| session.all(SQL, &[], read_reserved).await).await
    }
}

fn read_reserved(row: Row<'_>) -> Result<ReservedRun, Error> {
    let run: String = row.get("id")?;
    Ok(ReservedRun {
        run: parse(&run, "id", &run)?,
        claimable_by: row.parse(&run, "claimable_by", "claimable_by")?,
        place: row.parse_some(&run, "place", "place")?,
    })
}

fn read_live(row: Row<'_>) -> Result<LiveRun, Error> {
    let run: String = row.get("id")?;
    Ok(LiveRun {
        attempt: AttemptRef { run: parse(&run, "id", &run)?, number: row.get("attempts")? },
        node: row.parse(&run, "lease_node", "lease_node")?,
        token: row.get("token")?,
        lease_expires_at_ms: row.get("lease_expires_at_ms")?,
        claimable_by: row.parse_some(&run, "claimable_by", "claimable_by")?,
        place: row.parse_some(&run, "lease_place", "lease_place")?,
    })
}
