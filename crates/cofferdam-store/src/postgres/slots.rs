//! How many attempts are under way at once, whoever executes them.
//!
//! An attempt takes its slot in the transaction that claims it and gives it back in the one that records its end. Whoever
//! claims with a limit holds the claimers' lock meanwhile, so that a slot is never given twice.

use cofferdam_core::RunState;

use super::session::Session;
use super::{Postgres, int};
use crate::error::Error;
use crate::record::Slots;
use crate::slot_times::{KEEPS_PLACE_MS, RENEW_PLACE_MS};

/// After its lease has expired a detached sandbox may go on, but not beyond its own wall clock.
const TAKEN: &str =
    "SELECT count(*) FROM runs WHERE state = 'running' AND lease_expires_at_ms + timeout_ms > $1";

impl Postgres {
    pub(crate) async fn slots_in_use(&self, now_ms: u64) -> Result<u32, Error> {
        let taken: i64 = self
            .read(|mut session| async move {
                Ok(session.scalar(TAKEN).bind(int(now_ms)).fetch_one(session.connection()).await?)
            })
            .await?;
        Ok(u32::try_from(taken).unwrap_or(u32::MAX))
    }
}

/// Whether a queued run has to wait: no slot is free, or older runs wait for those that are. It keeps its place then.
pub(super) async fn has_to_wait(
    session: &mut Session,
    run: &str,
    slots: Slots,
    now_ms: u64,
) -> Result<bool, Error> {
    let most = match slots {
        Slots::Unlimited => return Ok(false),
        Slots::AtMost(most) => i64::from(most.get()),
    };
    let taken: i64 = session.scalar(TAKEN).bind(int(now_ms)).fetch_one(session.connection()).await?;
    if taken + ahead_of(session, run, now_ms).await? < most {
        return Ok(false);
    }
    session
        .query(
            "UPDATE runs SET waits_at_ms = $1 WHERE id = $2 AND (waits_at_ms IS NULL OR waits_at_ms <= $3)",
        )
        .bind(int(now_ms))
        .bind(run)
        .bind(int(now_ms.saturating_sub(RENEW_PLACE_MS)))
        .execute(session.connection())
        .await?;
    Ok(true)
}

/// How many runs wait that come before this one.
async fn ahead_of(session: &mut Session, run: &str, now_ms: u64) -> Result<i64, Error> {
    Ok(session
        .scalar(
            "SELECT count(*) FROM runs JOIN runs AS own ON own.id = $1 \
             WHERE runs.state = $2 AND runs.not_before_ms <= $3 AND runs.waits_at_ms > $4 \
             AND (-runs.priority, runs.created_at, runs.id) < (-own.priority, own.created_at, own.id)",
        )
        .bind(run)
        .bind(RunState::Queued.as_str())
        .bind(int(now_ms))
        .bind(int(now_ms) - int(KEEPS_PLACE_MS))
        .fetch_one(session.connection())
        .await?)
}
