//! How many attempts are under way at once, whoever executes them.
//!
//! An attempt takes its slot in the transaction that claims it and gives it back in the one that records its end. Whoever
//! claims with a limit waits in line, so that a slot is never given twice; one whose owner died is free as soon as recovery
//! has told the truth about the run.

use cofferdam_core::RunState;

use super::Store;
use crate::error::Error;
use crate::record::Slots;
use crate::session::{Session, values};
use crate::stored::int;

/// How long a queued run keeps its place in the line after somebody last tried to claim it. One whose process was
/// stopped, or that no dispatcher asks for, must not hold up the others.
const KEEPS_PLACE_MS: u64 = 10_000;
/// How often the place is renewed: each time is a write to the disk.
const RENEW_PLACE_MS: u64 = 2_000;

impl Store {
    /// How many attempts are under way and take a slot. Direct runs take none.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn slots_in_use(&self, now_ms: u64) -> Result<u32, Error> {
        self.read(async move |session| taken(session, now_ms).await).await
    }
}

/// After its lease has expired a detached sandbox may go on, but not beyond its own wall clock.
async fn taken(session: &mut Session<'_>, now_ms: u64) -> Result<u32, Error> {
    let sql = "SELECT count(*) FROM runs WHERE state = 'running' AND NOT is_direct AND lease_expires_at_ms + timeout_ms > ?1";
    session.one(sql, values![now_ms], |row| row.first()).await
}

/// Whether a queued run has to wait: no slot is free, or older runs wait for those that are. It keeps its place then.
pub(super) async fn has_to_wait(
    session: &mut Session<'_>,
    run: &str,
    slots: Slots,
    now_ms: u64,
) -> Result<bool, Error> {
    let most = match slots {
        Slots::Unlimited => return Ok(false),
        Slots::AtMost(most) => most.get(),
    };
    if taken(session, now_ms).await?.saturating_add(ahead_of(session, run, now_ms).await?) < most {
        return Ok(false);
    }
    session
        .execute(
            "UPDATE runs SET waits_at_ms = ?1 WHERE id = ?2 AND (waits_at_ms IS NULL OR waits_at_ms <= ?3)",
            values![now_ms, run, now_ms.saturating_sub(RENEW_PLACE_MS)],
        )
        .await?;
    Ok(true)
}

/// How many runs wait that come before this one.
async fn ahead_of(session: &mut Session<'_>, run: &str, now_ms: u64) -> Result<u32, Error> {
    session
        .one(
            "SELECT count(*) FROM runs JOIN runs AS own ON own.id = ?1 \
             WHERE runs.state = ?2 AND runs.not_before_ms <= ?3 AND runs.waits_at_ms > ?4 \
             AND (-runs.priority, runs.created_at, runs.id) < (-own.priority, own.created_at, own.id)",
            values![run, RunState::Queued, now_ms, int(now_ms) - int(KEEPS_PLACE_MS)],
            |row| row.first(),
        )
        .await
}
