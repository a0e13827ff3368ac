//! Gives a queued run to a node: a new attempt.

use cofferdam_core::{AttemptRef, EventType, NewEvent, NodeId, RunId, RunRequest, RunState};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::append::number_and_insert;
use super::slots::has_to_wait;
use super::{Sqlite, begin, from_json, int, to_json, uint};
use crate::claim_rules::{ClaimRules, Owner};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::claimed_state;
use crate::lease::{Claimed, Lease};

/// Whether the run `next` comes after another: it waits for every earlier message to the same agent, in the order in
/// which they were accepted, and for whoever works right now in the folder that it would work in, or above or below.
macro_rules! behind {
    () => {
        "(next.conversation IS NOT NULL AND EXISTS (SELECT 1 FROM runs AS other \
         WHERE other.conversation = next.conversation AND other.state IN ('queued', 'running') \
         AND other.rowid < next.rowid) \
         OR next.direct_path IS NOT NULL AND EXISTS (SELECT 1 FROM runs AS other \
         WHERE other.state = 'running' AND other.direct_path IS NOT NULL AND other.rowid <> next.rowid \
         AND (instr(other.direct_path, next.direct_path) = 1 OR instr(next.direct_path, other.direct_path) = 1)))"
    };
}

/// Whether the lane, the project or the agent of the run `next` has as many runs under way as it may.
macro_rules! crowded {
    () => {
        "(next.lane IS NOT NULL AND EXISTS (SELECT 1 FROM runs AS other \
         WHERE other.state = 'running' AND other.lane = next.lane) \
         OR next.project IS NOT NULL AND (SELECT count(*) FROM runs AS other \
         WHERE other.state = 'running' AND other.project = next.project) \
         >= coalesce((SELECT max_concurrency FROM projects WHERE projects.id = next.project), ?7) \
         OR next.agent IS NOT NULL AND (SELECT count(*) FROM runs AS other \
         WHERE other.state = 'running' AND other.agent = next.agent) \
         >= coalesce((SELECT value FROM json_each(?9) WHERE key = next.agent), ?8))"
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
        owner: &Owner,
        only: Option<&RunId>,
        now_ms: u64,
        lease_ms: u64,
        rules: &ClaimRules,
    ) -> Result<Option<Claimed>, Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        let Some(run) = first_claimable(&mut transaction, owner, only, now_ms, rules).await? else {
            return Ok(None);
        };
        if has_to_wait(&mut transaction, &run, rules.slots, now_ms).await? {
            transaction.commit().await?;
            return Ok(None);
        }
        let row = sqlx::query(
            "UPDATE runs SET state = ?4, attempts = attempts + 1, token = token + 1, lease_node = ?1, \
             lease_place = ?6, lease_expires_at_ms = ?2, updated_at = ?3, waits_at_ms = NULL WHERE id = ?5 \
             RETURNING id, request, attempts, token",
        )
        .bind(owner.node.as_str())
        .bind(int(now_ms.saturating_add(lease_ms)))
        .bind(int(now_ms))
        .bind(claimed_state().as_str())
        .bind(&run)
        .bind(owner.place.as_str())
        .fetch_one(&mut *transaction)
        .await?;
        let claimed = start_attempt(&mut transaction, &row, &owner.node, now_ms).await?;
        transaction.commit().await?;
        failpoint("store.claim");
        Ok(Some(claimed))
    }

    pub(crate) async fn claim_for_recovery(
        &self,
        run: &RunId,
        new_owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        let row = sqlx::query(
            "UPDATE runs SET state = ?4, attempts = attempts + 1, token = token + 1, lease_node = ?1, \
             lease_place = ?7, lease_expires_at_ms = ?2, updated_at = ?3 \
             WHERE id = ?6 AND state = ?5 AND claimable_by IS NOT NULL \
             RETURNING id, request, attempts, token",
        )
        .bind(new_owner.node.as_str())
        .bind(int(now_ms.saturating_add(lease_ms)))
        .bind(int(now_ms))
        .bind(claimed_state().as_str())
        .bind(RunState::Queued.as_str())
        .bind(run.as_str())
        .bind(new_owner.place.as_str())
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let claimed = start_attempt(&mut transaction, &row, &new_owner.node, now_ms).await?;
        transaction.commit().await?;
        failpoint("store.claim_for_recovery");
        Ok(Some(claimed))
    }
}

async fn first_claimable(
    transaction: &mut SqliteConnection,
    owner: &Owner,
    only: Option<&RunId>,
    now_ms: u64,
    rules: &ClaimRules,
) -> Result<Option<String>, Error> {
    let names = |empty: bool, names: String| if empty { None } else { Some(names) };
    Ok(sqlx::query_scalar(concat!(
        "SELECT id FROM runs AS next WHERE state = 'queued' AND not_before_ms <= ?1 \
         AND (claimable_by IS NULL OR claimable_by = ?2) AND (place IS NULL OR place = ?3) \
         AND (?4 IS NULL OR id = ?4) \
         AND (?5 IS NULL OR role IN (SELECT value FROM json_each(?5))) \
         AND (?6 IS NULL OR mode IN (SELECT value FROM json_each(?6))) \
         AND NOT ",
        behind!(),
        " AND NOT ",
        crowded!(),
        " ORDER BY priority DESC, created_at, id LIMIT 1",
    ))
    .bind(int(now_ms))
    .bind(owner.node.as_str())
    .bind(owner.place.as_str())
    .bind(only.map(RunId::as_str))
    .bind(names(rules.roles.is_empty(), to_json(&rules.roles)))
    .bind(names(rules.modes.is_empty(), to_json(&rules.modes)))
    .bind(int(rules.per_project.most()))
    .bind(int(rules.per_agent.most()))
    .bind(to_json(&rules.agents))
    .fetch_optional(transaction)
    .await?)
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
