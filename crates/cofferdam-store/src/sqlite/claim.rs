//! Gives a queued run to a node: a new attempt.

use cofferdam_core::{AttemptRef, EventType, NewEvent, NodeId, RunId, RunRequest, RunState, Transition};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::append::number_and_insert;
use super::slots::has_to_wait;
use super::{Sqlite, begin, from_json, int, uint};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::{Claimed, Lease};
use crate::record::Slots;

/// Whether the run `next` comes after another: it waits for every earlier message to the same agent, in the order in
/// which they were accepted, and for whoever works right now in the folder that it would work in, or above or below.
macro_rules! behind {
    () => {
        "EXISTS (SELECT 1 FROM runs AS other WHERE other.state IN ('queued', 'running') \
         AND other.rowid <> next.rowid \
         AND ((other.rowid < next.rowid \
         AND other.request ->> '$.conversation.agent' = next.request ->> '$.conversation.agent') \
         OR (other.state = 'running' AND other.request ->> '$.workspace' = 'direct' \
         AND next.request ->> '$.workspace' = 'direct' \
         AND (instr(other.request ->> '$.source.path' || '/', next.request ->> '$.source.path' || '/') = 1 \
         OR instr(next.request ->> '$.source.path' || '/', other.request ->> '$.source.path' || '/') = 1))))"
    };
}

impl Sqlite {
    pub(crate) async fn is_behind(&self, run: &RunId) -> Result<bool, Error> {
        let is_behind = concat!("SELECT ", behind!(), " FROM runs AS next WHERE id = ?1");
        let found = sqlx::query_scalar(is_behind).bind(run.as_str()).fetch_optional(self.readers()).await?;
        Ok(found.unwrap_or(false))
    }

    pub(crate) async fn claim(
        &self,
        node: &NodeId,
        only: Option<&RunId>,
        now_ms: u64,
        lease_ms: u64,
        slots: Slots,
    ) -> Result<Option<Claimed>, Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        let Some(run) = oldest_claimable(&mut transaction, node, only, now_ms).await? else {
            return Ok(None);
        };
        if has_to_wait(&mut transaction, &run, slots, now_ms).await? {
            transaction.commit().await?;
            return Ok(None);
        }
        let row = sqlx::query(
            "UPDATE runs SET state = ?4, attempts = attempts + 1, token = token + 1, lease_node = ?1, \
             lease_expires_at_ms = ?2, updated_at = ?3, waits_at_ms = NULL WHERE id = ?5 \
             RETURNING id, request, attempts, token",
        )
        .bind(node.as_str())
        .bind(int(now_ms.saturating_add(lease_ms)))
        .bind(int(now_ms))
        .bind(claimed_state().as_str())
        .bind(&run)
        .fetch_one(&mut *transaction)
        .await?;
        let claimed = start_attempt(&mut transaction, &row, node, now_ms).await?;
        transaction.commit().await?;
        failpoint("store.claim");
        Ok(Some(claimed))
    }

    pub(crate) async fn claim_for_recovery(
        &self,
        run: &RunId,
        new_node: &NodeId,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        let row = sqlx::query(
            "UPDATE runs SET state = ?4, attempts = attempts + 1, token = token + 1, lease_node = ?1, \
             lease_expires_at_ms = ?2, updated_at = ?3 \
             WHERE id = ?6 AND state = ?5 AND claimable_by IS NOT NULL \
             RETURNING id, request, attempts, token",
        )
        .bind(new_node.as_str())
        .bind(int(now_ms.saturating_add(lease_ms)))
        .bind(int(now_ms))
        .bind(claimed_state().as_str())
        .bind(RunState::Queued.as_str())
        .bind(run.as_str())
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let claimed = start_attempt(&mut transaction, &row, new_node, now_ms).await?;
        transaction.commit().await?;
        failpoint("store.claim_for_recovery");
        Ok(Some(claimed))
    }
}

async fn oldest_claimable(
    transaction: &mut SqliteConnection,
    node: &NodeId,
    only: Option<&RunId>,
    now_ms: u64,
) -> Result<Option<String>, Error> {
    Ok(sqlx::query_scalar(concat!(
        "SELECT id FROM runs AS next WHERE state = ?1 AND not_before_ms <= ?2 \
         AND (claimable_by IS NULL OR claimable_by = ?3) AND (?4 IS NULL OR id = ?4) AND NOT ",
        behind!(),
        " ORDER BY created_at, id LIMIT 1",
    ))
    .bind(RunState::Queued.as_str())
    .bind(int(now_ms))
    .bind(node.as_str())
    .bind(only.map(RunId::as_str))
    .fetch_optional(transaction)
    .await?)
}

fn claimed_state() -> RunState {
    RunState::Queued.after(&Transition::Claim).expect("a queued run can be claimed")
}

async fn start_attempt(
    transaction: &mut SqliteConnection,
    row: &SqliteRow,
    node: &NodeId,
    now_ms: u64,
) -> Result<Claimed, Error> {
    let claimed = read_claimed(row, node)?;
    let AttemptRef { run, number } = &claimed.attempt;
    sqlx::query("INSERT INTO attempts (run, number, node, started_at) VALUES (?, ?, ?, ?)")
        .bind(run.as_str())
        .bind(number)
        .bind(node.as_str())
        .bind(int(now_ms))
        .execute(&mut *transaction)
        .await?;
    let event = NewEvent::new(now_ms, EventType::RunClaimed, json!({ "node": node, "attempt": number }));
    number_and_insert(transaction, run, Some(*number), &[event]).await?;
    Ok(claimed)
}

/// What a claim or an adoption has returned.
pub(super) fn read_claimed(row: &SqliteRow, node: &NodeId) -> Result<Claimed, Error> {
    let request: RunRequest = from_json(row.try_get("id")?, "request", row.try_get("request")?)?;
    let attempt = AttemptRef { run: request.id.clone(), number: row.try_get("attempts")? };
    let lease = Lease::new(attempt.clone(), node.clone(), uint(row.try_get("token")?));
    Ok(Claimed { request, attempt, lease })
}
