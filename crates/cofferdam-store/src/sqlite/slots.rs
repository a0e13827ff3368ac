//! How many attempts are under way at once, whoever executes them.
//!
//! An attempt takes its slot in the transaction that claims it and gives it back in the one that records its end. So a
//! slot is never given twice, and one whose owner died is free as soon as recovery has told the truth about the run.

use cofferdam_core::RunState;
use rusqlite::{Connection, params};

use super::{Sqlite, execute, int, one};
use crate::error::Error;
use crate::record::Slots;
use crate::slot_times::{KEEPS_PLACE_MS, RENEW_PLACE_MS};

/// After its lease has expired a detached sandbox may go on, but not beyond its own wall clock.
const TAKEN: &str = "SELECT count(*) FROM runs WHERE state = ?1 \
                     AND lease_expires_at_ms + timeout_ms > ?2";

impl Sqlite {
    pub(crate) async fn slots_in_use(&self, now_ms: u64) -> Result<u32, Error> {
        self.read(move |connection| {
            one(connection, TAKEN, params![RunState::Running.as_str(), int(now_ms)], |row| Ok(row.get(0)?))
        })
        .await
    }
}

/// Whether a queued run has to wait: no slot is free, or older runs wait for those that are. It keeps its place then.
pub(super) fn has_to_wait(
    transaction: &Connection,
    run: &str,
    slots: Slots,
    now_ms: u64,
) -> Result<bool, Error> {
    let most = match slots {
        Slots::Unlimited => return Ok(false),
        Slots::AtMost(most) => i64::from(most.get()),
    };
    let taken: i64 =
        one(transaction, TAKEN, params![RunState::Running.as_str(), int(now_ms)], |row| Ok(row.get(0)?))?;
    if taken + ahead_of(transaction, run, now_ms)? < most {
        return Ok(false);
    }
    execute(
        transaction,
        "UPDATE runs SET waits_at_ms = ?1 WHERE id = ?2 AND (waits_at_ms IS NULL OR waits_at_ms <= ?3)",
        params![int(now_ms), run, int(now_ms.saturating_sub(RENEW_PLACE_MS))],
    )?;
    Ok(true)
}

/// How many runs wait that come before this one.
fn ahead_of(transaction: &Connection, run: &str, now_ms: u64) -> Result<i64, Error> {
    one(
        transaction,
        "SELECT count(*) FROM runs JOIN runs AS own ON own.id = ?1 \
         WHERE runs.state = ?2 AND runs.not_before_ms <= ?3 AND runs.waits_at_ms > ?4 \
         AND (-runs.priority, runs.created_at, runs.id) < (-own.priority, own.created_at, own.id)",
        params![run, RunState::Queued.as_str(), int(now_ms), int(now_ms) - int(KEEPS_PLACE_MS)],
        |row| Ok(row.get(0)?),
    )
}
