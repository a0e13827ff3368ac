//! Gives a queued run to a node: a new attempt.
//!
//! Claims that depend on what else is under way (slots, lanes, projects, agents, conversations, folders) go one after
//! the other, in a line that lasts as long as their transaction; what they look at is then committed or not begun. A
//! claim without such a bound waits for nobody: in PostgreSQL it skips the rows that others are about to take.

use cofferdam_core::{AttemptRef, EventType, NewEvent, NodeId, RunId, RunRequest, RunState};
use serde_json::json;

use super::Store;
use super::append::number_and_insert;
use super::slots::has_to_wait;
use crate::claim_rules::{ClaimRules, Owner};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::claimed_state;
use crate::lease::{Claimed, Lease};
use crate::record::Slots;
use crate::session::{Line, Row, Session, Sql, values};
use crate::stored::to_json;

/// Whether the run `next` comes after another: it waits for every earlier message to the same agent, in the order in
/// which they were accepted, and for whoever works right now in the folder that it would work in, or above or below.
///
/// SQLite is told which index to use (here and below), and refuses a statement for which there is none: left to itself it
/// would look through all runs of the owner, the project or the conversation, for each run that waits.
macro_rules! behind {
    (accepted: $accepted:literal, live: $live:literal) => {
        concat!(
            "(next.conversation IS NOT NULL AND EXISTS (SELECT 1 FROM runs AS other",
            $live,
            " WHERE other.conversation = next.conversation AND other.state IN ('queued', 'running') \
             AND other.",
            $accepted,
            " < next.",
            $accepted,
            ") OR next.direct_path IS NOT NULL AND EXISTS (SELECT 1 FROM runs AS other \
             WHERE other.state = 'running' AND other.direct_path IS NOT NULL AND other.id <> next.id \
             AND (substr(other.direct_path, 1, length(next.direct_path)) = next.direct_path \
             OR substr(next.direct_path, 1, length(other.direct_path)) = other.direct_path)))"
        )
    };
}

const IS_BEHIND: Sql = Sql::differs(
    concat!(
        "SELECT ",
        behind!(accepted: "rowid", live: " INDEXED BY runs_live_in_conversation"),
        " FROM runs AS next WHERE id = ?1"
    ),
    concat!("SELECT ", behind!(accepted: "accepted", live: ""), " FROM runs AS next WHERE id = ?1"),
);

/// The first run that may be claimed, and whether that depends on what else is under way: it does not if the run is
/// neither behind another, nor in a lane of its owner, project or agent that has as many runs under way as it may. A direct run
/// takes no room from others, and none of them keeps it waiting.
macro_rules! first_claimable {
    (accepted: $accepted:literal, live: $live:literal, under_way: $under_way:literal, role: $role:literal,
     mode: $mode:literal, of_agent: $of_agent:literal) => {
        concat!(
            "SELECT id, is_direct, NOT is_direct AND (lane IS NOT NULL OR project IS NOT NULL OR agent IS NOT NULL \
             OR conversation IS NOT NULL OR direct_path IS NOT NULL) AS is_bound \
             FROM runs AS next WHERE state = 'queued' AND not_before_ms <= ?1 \
             AND (claimable_by IS NULL OR claimable_by = ?2) AND (place IS NULL OR place = ?3) \
             AND (CAST(?4 AS text) IS NULL OR id = ?4) AND (is_direct AND ?11 OR NOT is_direct AND ?10) AND ",
            $role,
            " AND (is_direct OR ",
            $mode,
            ") AND NOT ",
            behind!(accepted: $accepted, live: $live),
            " AND NOT (NOT next.is_direct AND (next.lane IS NOT NULL AND EXISTS (SELECT 1 FROM runs AS other",
            $under_way,
            " WHERE other.state = 'running' AND other.lane = next.lane AND other.owner = next.owner) \
             OR next.project IS NOT NULL AND (SELECT count(*) FROM runs AS other",
            $under_way,
            " WHERE other.state = 'running' AND other.project = next.project AND NOT other.is_direct) \
             >= coalesce((SELECT max_concurrency FROM projects WHERE projects.id = next.project), ?7) \
             OR next.agent IS NOT NULL AND (SELECT count(*) FROM runs AS other",
            $under_way,
            " WHERE other.state = 'running' AND other.agent = next.agent) >= coalesce(",
            $of_agent,
            ", ?8))) ORDER BY priority DESC, created_at, id LIMIT 1"
        )
    };
}

/// It is locked from now on; rows that others are about to take are passed over.
const FIRST_CLAIMABLE: Sql = Sql::differs(
    first_claimable!(
        accepted: "rowid",
        live: " INDEXED BY runs_live_in_conversation",
        under_way: " INDEXED BY runs_under_way",
        role: "(?5 IS NULL OR role IN (SELECT value FROM json_each(?5)))",
        mode: "(?6 IS NULL OR mode IN (SELECT value FROM json_each(?6)))",
        of_agent: "(SELECT value FROM json_each(?9) WHERE key = next.agent)"
    ),
    first_claimable!(
        accepted: "accepted",
        live: "",
        under_way: "",
        role: "(?5::text[] IS NULL OR role = ANY(?5))",
        mode: "(?6::text[] IS NULL OR mode = ANY(?6))",
        of_agent: "(?9::jsonb ->> next.agent)::bigint"
    ),
)
.locking("FOR NO KEY UPDATE OF next SKIP LOCKED");

impl Store {
    /// Whether a queued run waits for earlier messages to the same agent, or for whoever works in its folder.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn is_behind(&self, run: &RunId) -> Result<bool, Error> {
        let run = run.clone();
        let found = self
            .read(async move |session| session.optional(IS_BEHIND, values![&run], |row| row.first()).await)
            .await?;
        Ok(found.unwrap_or(false))
    }

    /// Whether a direct run waits that is due. A node looks here before it claims one: a claim is a write, and takes the line from
    /// others also where it finds nothing.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn has_direct_waiting(&self, now_ms: u64) -> Result<bool, Error> {
        const SQL: &str =
            "SELECT EXISTS (SELECT 1 FROM runs WHERE state = 'queued' AND is_direct AND not_before_ms <= ?1)";
        self.read(async move |session| session.one(SQL, values![now_ms], |row| row.first()).await).await
    }

    /// Gives this node the first queued run that it may have now, by priority and then by age: a new attempt, counted
    /// here. A run whose lease has expired is not given; see [`Store::expired`]. `None` also if no slot is free, or
    /// runs before it wait for those that are.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn claim(
        &self,
        owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
        rules: &ClaimRules,
    ) -> Result<Option<Claimed>, Error> {
        self.claim_any(owner, None, now_ms, lease_ms, rules).await
    }

    /// Gives this node one run, and no other: a new attempt, counted here. `None` if the run is not queued, is
    /// not due, is reserved for another process, or has to wait for a slot.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn claim_run(
        &self,
        run: &RunId,
        owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
        rules: &ClaimRules,
    ) -> Result<Option<Claimed>, Error> {
        self.claim_any(owner, Some(run), now_ms, lease_ms, rules).await
    }

    async fn claim_any(
        &self,
        owner: &Owner,
        only: Option<&RunId>,
        now_ms: u64,
        lease_ms: u64,
        rules: &ClaimRules,
    ) -> Result<Option<Claimed>, Error> {
        let mut waits = match rules.slots {
            Slots::Unlimited => Waits::No,
            Slots::AtMost(_) => Waits::InLine,
        };
        loop {
            let claimer = Claimer {
                owner: owner.clone(),
                only: only.cloned(),
                rules: rules.clone(),
                now_ms,
                lease_ms,
                waits,
            };
            match self.write(async move |session| claimer.claim(session).await).await? {
                Tried::Claimed(claimed) => {
                    failpoint("store.claim");
                    return Ok(Some(*claimed));
                }
                Tried::Nothing => return Ok(None),
                Tried::HasToWait => waits = Waits::InLine,
            }
        }
    }

    /// Takes a queued run that was reserved for a process that is known to be dead, so that its end can be
    /// recorded. `None` if it is no longer queued or was not reserved.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn claim_for_recovery(
        &self,
        run: &RunId,
        new_owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        let (run, Owner { node, place }) = (run.clone(), new_owner.clone());
        let claimed = self
            .write(async move |session| {
                let until_ms = now_ms.saturating_add(lease_ms);
                let claimed = session
                    .optional(
                        "UPDATE runs SET state = ?4, attempts = attempts + 1, token = token + 1, lease_node = ?1, \
                         lease_place = ?7, lease_expires_at_ms = ?2, updated_at = ?3 \
                         WHERE id = ?6 AND state = ?5 AND claimable_by IS NOT NULL \
                         RETURNING id, request, attempts, token",
                        values![&node, until_ms, now_ms, claimed_state(), RunState::Queued, &run, &place],
                        |row| read_claimed(row, &node),
                    )
                    .await?;
                if let Some(claimed) = &claimed {
                    start_attempt(session, claimed, now_ms).await?;
                }
                Ok(claimed)
            })
            .await?;
        if claimed.is_some() {
            failpoint("store.claim_for_recovery");
        }
        Ok(claimed)
    }
}

/// Whether a claimer waits for those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    InLine,
    No,
}

enum Tried {
    Claimed(Box<Claimed>),
    Nothing,
    /// The first run that could be had depends on what else is under way.
    HasToWait,
}

struct Claimer {
    owner: Owner,
    only: Option<RunId>,
    rules: ClaimRules,
    now_ms: u64,
    lease_ms: u64,
    waits: Waits,
}

/// The first run that may be claimed.
struct Claimable {
    run: String,
    is_direct: bool,
    /// Whether that depends on what else is under way.
    is_bound: bool,
}

impl Claimer {
    async fn claim(&self, session: &mut Session<'_>) -> Result<Tried, Error> {
        if self.waits == Waits::InLine {
            session.wait_in(Line::Claims).await?;
        }
        let Some(Claimable { run, is_direct, is_bound }) = self.first_claimable(session).await? else {
            return Ok(Tried::Nothing);
        };
        if is_bound && self.waits == Waits::No && !session.writes_alone() {
            return Ok(Tried::HasToWait);
        }
        if !is_direct && has_to_wait(session, &run, self.rules.slots, self.now_ms).await? {
            return Ok(Tried::Nothing);
        }
        let Owner { node, place } = &self.owner;
        let until_ms = self.now_ms.saturating_add(self.lease_ms);
        let claimed = session
            .one(
                "UPDATE runs SET state = ?4, attempts = attempts + 1, token = token + 1, lease_node = ?1, \
                 lease_place = ?6, lease_expires_at_ms = ?2, updated_at = ?3, waits_at_ms = NULL WHERE id = ?5 \
                 RETURNING id, request, attempts, token",
                values![node, until_ms, self.now_ms, claimed_state(), &run, place],
                |row| read_claimed(row, node),
            )
            .await?;
        start_attempt(session, &claimed, self.now_ms).await?;
        Ok(Tried::Claimed(Box::new(claimed)))
    }

    async fn first_claimable(&self, session: &mut Session<'_>) -> Result<Option<Claimable>, Error> {
        let Self { owner, only, rules, now_ms, .. } = self;
        let roles: Vec<String> = rules.roles.iter().map(|role| role.as_str().to_owned()).collect();
        let modes: Vec<String> = rules.modes.iter().map(ToString::to_string).collect();
        let (processes, direct) = rules.work.kinds();
        session
            .optional(
                FIRST_CLAIMABLE,
                values![
                    *now_ms,
                    &owner.node,
                    &owner.place,
                    only.as_ref(),
                    (!roles.is_empty()).then_some(roles),
                    (!modes.is_empty()).then_some(modes),
                    rules.per_project.most(),
                    rules.per_agent.most(),
                    to_json(&rules.agents),
                    processes,
                    direct,
                ],
                |row| {
                    Ok(Claimable {
                        run: row.get("id")?,
                        is_direct: row.get("is_direct")?,
                        is_bound: row.get("is_bound")?,
                    })
                },
            )
            .await
    }
}

async fn start_attempt(session: &mut Session<'_>, claimed: &Claimed, now_ms: u64) -> Result<(), Error> {
    let (AttemptRef { run, number }, node) = (&claimed.attempt, claimed.lease.node());
    session
        .execute(
            "INSERT INTO attempts (run, number, node, started_at) VALUES (?1, ?2, ?3, ?4)",
            values![run, *number, node, now_ms],
        )
        .await?;
    let event = NewEvent::new(now_ms, EventType::RunClaimed, json!({ "node": node, "attempt": number }));
    number_and_insert(session, run, Some(*number), &[event]).await?;
    Ok(())
}

/// What a claim or an adoption has returned.
pub(super) fn read_claimed(row: Row<'_>, node: &NodeId) -> Result<Claimed, Error> {
    let request: RunRequest = row.json(&row.get::<String>("id")?, "request", "request")?;
    let attempt = AttemptRef { run: request.id.clone(), number: row.get("attempts")? };
    let lease = Lease::new(attempt.clone(), node.clone(), row.get("token")?);
    Ok(Claimed { request, attempt, lease })
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
