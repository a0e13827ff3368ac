//! Gives a queued run to a node: a new attempt.
//!
//! Claims that depend on what else is under way (slots, lanes, projects, agents, conversations, folders) go one after
//! the other, under a lock that lasts as long as their transaction; what they look at is then committed or not begun. A
//! claim without such a bound waits for nobody: it skips the rows that others are about to take.

use cofferdam_core::{AttemptRef, EventType, NewEvent, NodeId, RunId, RunRequest, RunState};
use serde_json::json;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::append::number_and_insert;
use super::session::Session;
use super::slots::has_to_wait;
use super::{Postgres, count, from_json, int, number, to_json};
use crate::claim_rules::{ClaimRules, Owner};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::claimed_state;
use crate::lease::{Claimed, Lease};
use crate::record::Slots;

/// Spells `claims`.
const CLAIMERS_LOCK: &str = "SELECT pg_advisory_xact_lock(109249199176051)";

/// Whether the run `next` comes after another: it waits for every earlier message to the same agent, in the order in
/// which they were accepted, and for whoever works right now in the folder that it would work in, or above or below.
macro_rules! behind {
    () => {
        "(next.conversation IS NOT NULL AND EXISTS (SELECT 1 FROM runs AS other \
         WHERE other.conversation = next.conversation AND other.state IN ('queued', 'running') \
         AND other.accepted < next.accepted) \
         OR next.direct_path IS NOT NULL AND EXISTS (SELECT 1 FROM runs AS other \
         WHERE other.state = 'running' AND other.direct_path IS NOT NULL AND other.id <> next.id \
         AND (starts_with(other.direct_path, next.direct_path) OR starts_with(next.direct_path, other.direct_path))))"
    };
}

/// Whether the lane, the project or the agent of the run `next` has as many runs under way as it may.
macro_rules! crowded {
    () => {
        "(next.lane IS NOT NULL AND EXISTS (SELECT 1 FROM runs AS other \
         WHERE other.state = 'running' AND other.lane = next.lane) \
         OR next.project IS NOT NULL AND (SELECT count(*) FROM runs AS other \
         WHERE other.state = 'running' AND other.project = next.project) \
         >= coalesce((SELECT max_concurrency FROM projects WHERE projects.id = next.project), $7) \
         OR next.agent IS NOT NULL AND (SELECT count(*) FROM runs AS other \
         WHERE other.state = 'running' AND other.agent = next.agent) \
         >= coalesce(($9::jsonb ->> next.agent)::bigint, $8))"
    };
}

impl Postgres {
    pub(crate) async fn is_behind(&self, run: &RunId) -> Result<bool, Error> {
        let found: Option<bool> = self
            .read(|mut session| async move {
                Ok(session
                    .scalar(concat!("SELECT ", behind!(), " FROM runs AS next WHERE id = $1"))
                    .bind(run.as_str())
                    .fetch_optional(session.connection())
                    .await?)
            })
            .await?;
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
        let mut line = match rules.slots {
            Slots::Unlimited => Line::Skipped,
            Slots::AtMost(_) => Line::Kept,
        };
        loop {
            let tried = self.write(|mut session| async move {
                let tried = claim_one(&mut session, owner, only, now_ms, lease_ms, rules, line).await?;
                session.done(tried)
            });
            match tried.await? {
                Tried::Claimed(claimed) => {
                    failpoint("store.claim");
                    return Ok(Some(*claimed));
                }
                Tried::Nothing => return Ok(None),
                Tried::NeedsLine => line = Line::Kept,
            }
        }
    }

    pub(crate) async fn claim_for_recovery(
        &self,
        run: &RunId,
        new_owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        let claimed = self
            .write(|mut session| async move {
                let row = session
                    .query(
                        "UPDATE runs SET state = $4, attempts = attempts + 1, token = token + 1, lease_node = $1, \
                         lease_place = $7, lease_expires_at_ms = $2, updated_at = $3 \
                         WHERE id = $6 AND state = $5 AND claimable_by IS NOT NULL \
                         RETURNING id, request, attempts, token",
                    )
                    .bind(new_owner.node.as_str())
                    .bind(int(now_ms.saturating_add(lease_ms)))
                    .bind(int(now_ms))
                    .bind(claimed_state().as_str())
                    .bind(RunState::Queued.as_str())
                    .bind(run.as_str())
                    .bind(new_owner.place.as_str())
                    .fetch_optional(session.connection())
                    .await?;
                let Some(row) = row else { return session.done(None) };
                let claimed = start_attempt(&mut session, &row, &new_owner.node, now_ms).await?;
                session.done(Some(claimed))
            })
            .await?;
        if claimed.is_some() {
            failpoint("store.claim_for_recovery");
        }
        Ok(claimed)
    }
}

/// Whether a claimer has lined up behind the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Kept,
    Skipped,
}

enum Tried {
    Claimed(Box<Claimed>),
    Nothing,
    /// The first run that could be had depends on what else is under way.
    NeedsLine,
}

async fn claim_one(
    session: &mut Session,
    owner: &Owner,
    only: Option<&RunId>,
    now_ms: u64,
    lease_ms: u64,
    rules: &ClaimRules,
    line: Line,
) -> Result<Tried, Error> {
    if line == Line::Kept {
        session.query(CLAIMERS_LOCK).execute(session.connection()).await?;
    }
    let Some((run, is_bound)) = first_claimable(session, owner, only, now_ms, rules).await? else {
        return Ok(Tried::Nothing);
    };
    if is_bound && line == Line::Skipped {
        return Ok(Tried::NeedsLine);
    }
    if has_to_wait(session, &run, rules.slots, now_ms).await? {
        return Ok(Tried::Nothing);
    }
    let row = session
        .query(
            "UPDATE runs SET state = $4, attempts = attempts + 1, token = token + 1, lease_node = $1, \
             lease_place = $6, lease_expires_at_ms = $2, updated_at = $3, waits_at_ms = NULL WHERE id = $5 \
             RETURNING id, request, attempts, token",
        )
        .bind(owner.node.as_str())
        .bind(int(now_ms.saturating_add(lease_ms)))
        .bind(int(now_ms))
        .bind(claimed_state().as_str())
        .bind(&run)
        .bind(owner.place.as_str())
        .fetch_one(session.connection())
        .await?;
    Ok(Tried::Claimed(Box::new(start_attempt(session, &row, &owner.node, now_ms).await?)))
}

/// The first run that may be claimed, and whether that depends on what else is under way. It is locked from now on.
async fn first_claimable(
    session: &mut Session,
    owner: &Owner,
    only: Option<&RunId>,
    now_ms: u64,
    rules: &ClaimRules,
) -> Result<Option<(String, bool)>, Error> {
    let roles: Vec<&str> = rules.roles.iter().map(|role| role.as_str()).collect();
    let modes: Vec<String> = rules.modes.iter().map(ToString::to_string).collect();
    let row = session
        .query(concat!(
            "SELECT id, lane IS NOT NULL OR project IS NOT NULL OR agent IS NOT NULL OR conversation IS NOT NULL \
             OR direct_path IS NOT NULL AS is_bound \
             FROM runs AS next WHERE state = 'queued' AND not_before_ms <= $1 \
             AND (claimable_by IS NULL OR claimable_by = $2) AND (place IS NULL OR place = $3) \
             AND ($4::text IS NULL OR id = $4) \
             AND ($5::text[] IS NULL OR role = ANY($5)) \
             AND ($6::text[] IS NULL OR mode = ANY($6)) \
             AND NOT ",
            behind!(),
            " AND NOT ",
            crowded!(),
            " ORDER BY priority DESC, created_at, id LIMIT 1 FOR NO KEY UPDATE OF next SKIP LOCKED",
        ))
        .bind(int(now_ms))
        .bind(owner.node.as_str())
        .bind(owner.place.as_str())
        .bind(only.map(RunId::as_str))
        .bind((!roles.is_empty()).then_some(roles))
        .bind((!modes.is_empty()).then_some(modes))
        .bind(int(rules.per_project.most()))
        .bind(int(rules.per_agent.most()))
        .bind(to_json(&rules.agents))
        .fetch_optional(session.connection())
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some((row.try_get("id")?, row.try_get("is_bound")?)))
}

async fn start_attempt(
    session: &mut Session,
    row: &PgRow,
    node: &NodeId,
    now_ms: u64,
) -> Result<Claimed, Error> {
    let claimed = read_claimed(row, node)?;
    let AttemptRef { run, number } = &claimed.attempt;
    session
        .query("INSERT INTO attempts (run, number, node, started_at) VALUES ($1, $2, $3, $4)")
        .bind(run.as_str())
        .bind(i64::from(*number))
        .bind(node.as_str())
        .bind(int(now_ms))
        .execute(session.connection())
        .await?;
    let event = NewEvent::new(now_ms, EventType::RunClaimed, json!({ "node": node, "attempt": number }));
    number_and_insert(session, run, Some(*number), &[&event]).await?;
    Ok(claimed)
}

/// What a claim or an adoption has returned.
pub(super) fn read_claimed(row: &PgRow, node: &NodeId) -> Result<Claimed, Error> {
    let request: RunRequest = from_json(row.try_get("id")?, "request", row.try_get("request")?)?;
    let attempt = AttemptRef { run: request.id.clone(), number: count(row, "attempts")? };
    let lease = Lease::new(attempt.clone(), node.clone(), number(row, "token")?);
    Ok(Claimed { request, attempt, lease })
}
