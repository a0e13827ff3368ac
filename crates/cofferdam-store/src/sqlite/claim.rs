//! Gives a queued run to a node: a new attempt.

use cofferdam_core::{AttemptRef, EventType, NewEvent, NodeId, RunId, RunRequest, RunState};
use rusqlite::{Connection, Row, params};
use serde_json::json;

use super::append::number_and_insert;
use super::slots::has_to_wait;
use super::{Sqlite, execute, from_json, int, one, optional, to_json, uint};
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
        let run = run.clone();
        self.read(move |connection| {
            let is_behind = concat!("SELECT ", behind!(), " FROM runs AS next WHERE id = ?1");
            let found = optional(connection, is_behind, params![run.as_str()], |row| Ok(row.get(0)?))?;
            Ok(found.unwrap_or(false))
        })
        .await
    }

    pub(crate) async fn claim(
        &self,
        owner: &Owner,
        only: Option<&RunId>,
        now_ms: u64,
        lease_ms: u64,
        rules: &ClaimRules,
    ) -> Result<Option<Claimed>, Error> {
        let (owner, only, rules) = (owner.clone(), only.cloned(), rules.clone());
        let claimed = self
            .write(move |transaction| {
                let Some(run) = first_claimable(transaction, &owner, only.as_ref(), now_ms, &rules)? else {
                    return Ok(None);
                };
                if has_to_wait(transaction, &run, rules.slots, now_ms)? {
                    return Ok(None);
                }
                let claimed = one(
                    transaction,
                    "UPDATE runs SET state = ?4, attempts = attempts + 1, token = token + 1, \
                     lease_node = ?1, lease_place = ?6, lease_expires_at_ms = ?2, updated_at = ?3, \
                     waits_at_ms = NULL WHERE id = ?5 RETURNING id, request, attempts, token",
                    params![
                        owner.node.as_str(),
                        int(now_ms.saturating_add(lease_ms)),
                        int(now_ms),
                        claimed_state().as_str(),
                        run,
                        owner.place.as_str(),
                    ],
                    |row| read_claimed(row, &owner.node),
                )?;
                start_attempt(transaction, &claimed, &owner.node, now_ms)?;
                Ok(Some(claimed))
            })
            .await?;
        if claimed.is_some() {
            failpoint("store.claim");
        }
        Ok(claimed)
    }

    pub(crate) async fn claim_for_recovery(
        &self,
        run: &RunId,
        new_owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        let (run, new_owner) = (run.clone(), new_owner.clone());
        let claimed = self
            .write(move |transaction| {
                let claimed = optional(
                    transaction,
                    "UPDATE runs SET state = ?4, attempts = attempts + 1, token = token + 1, \
                     lease_node = ?1, lease_place = ?7, lease_expires_at_ms = ?2, updated_at = ?3 \
                     WHERE id = ?6 AND state = ?5 AND claimable_by IS NOT NULL \
                     RETURNING id, request, attempts, token",
                    params![
                        new_owner.node.as_str(),
                        int(now_ms.saturating_add(lease_ms)),
                        int(now_ms),
                        claimed_state().as_str(),
                        RunState::Queued.as_str(),
                        run.as_str(),
                        new_owner.place.as_str(),
                    ],
                    |row| read_claimed(row, &new_owner.node),
                )?;
                let Some(claimed) = claimed else { return Ok(None) };
                start_attempt(transaction, &claimed, &new_owner.node, now_ms)?;
                Ok(Some(claimed))
            })
            .await?;
        if claimed.is_some() {
            failpoint("store.claim_for_recovery");
        }
        Ok(claimed)
    }
}

fn first_claimable(
    transaction: &Connection,
    owner: &Owner,
    only: Option<&RunId>,
    now_ms: u64,
    rules: &ClaimRules,
) -> Result<Option<String>, Error> {
    let names = |empty: bool, names: String| if empty { None } else { Some(names) };
    optional(
        transaction,
        concat!(
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
        ),
        params![
            int(now_ms),
            owner.node.as_str(),
            owner.place.as_str(),
            only.map(RunId::as_str),
            names(rules.roles.is_empty(), to_json(&rules.roles)),
            names(rules.modes.is_empty(), to_json(&rules.modes)),
            int(rules.per_project.most()),
            int(rules.per_agent.most()),
            to_json(&rules.agents),
        ],
        |row| Ok(row.get(0)?),
    )
}

fn start_attempt(
    transaction: &Connection,
    claimed: &Claimed,
    node: &NodeId,
    now_ms: u64,
) -> Result<(), Error> {
    let AttemptRef { run, number } = &claimed.attempt;
    execute(
        transaction,
        "INSERT INTO attempts (run, number, node, started_at) VALUES (?, ?, ?, ?)",
        params![run.as_str(), number, node.as_str(), int(now_ms)],
    )?;
    let event = NewEvent::new(now_ms, EventType::RunClaimed, json!({ "node": node, "attempt": number }));
    number_and_insert(transaction, run, Some(*number), &[event])?;
    Ok(())
}

/// What a claim or an adoption has returned.
pub(super) fn read_claimed(row: &Row<'_>, node: &NodeId) -> Result<Claimed, Error> {
    let (id, request): (String, String) = (row.get("id")?, row.get("request")?);
    let request: RunRequest = from_json(&id, "request", &request)?;
    let attempt = AttemptRef { run: request.id.clone(), number: row.get("attempts")? };
    let lease = Lease::new(attempt.clone(), node.clone(), uint(row.get("token")?));
    Ok(Claimed { request, attempt, lease })
}
