//! Reads runs.

use cofferdam_core::{AgentName, Lane, ProjectId, Role, RunId, RunState};
use rusqlite::{Row, params};

use super::{Sqlite, all, from_json, int, one, optional, parse, parse_state, to_json, uint};
use crate::error::Error;
use crate::record::{AttemptRecord, Letter, RunFilter, RunMark, RunRecord, StateCounts};

const ONE: &str = "SELECT runs.*, attempts.seal FROM runs \
                   LEFT JOIN attempts ON attempts.run = runs.id AND attempts.number = runs.attempts \
                   WHERE runs.id = ?";
const NEWEST: &str = "SELECT runs.*, attempts.seal FROM runs \
                      LEFT JOIN attempts ON attempts.run = runs.id AND attempts.number = runs.attempts \
                      WHERE runs.state IN (SELECT value FROM json_each(?1)) \
                      AND (?3 IS NULL OR runs.project = ?3) AND (?4 IS NULL OR runs.agent = ?4) \
                      AND (?5 IS NULL OR runs.lane = ?5) AND (?6 IS NULL OR runs.role = ?6) \
                      AND (?7 IS NULL OR (runs.created_at, runs.id) < (?7, ?8)) \
                      ORDER BY runs.created_at DESC, runs.id DESC LIMIT ?2";

impl Sqlite {
    pub(crate) async fn run(&self, run: &RunId) -> Result<RunRecord, Error> {
        let run = run.clone();
        self.read(move |connection| {
            optional(connection, ONE, params![run.as_str()], read_run)?.ok_or(Error::NotFound { run })
        })
        .await
    }

    pub(crate) async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, Error> {
        let filter = filter.clone();
        self.read(move |connection| {
            let states: &[RunState] = if filter.states.is_empty() { &RunState::ALL } else { &filter.states };
            all(
                connection,
                NEWEST,
                params![
                    to_json(&states),
                    filter.newest,
                    filter.project.as_ref().map(ProjectId::as_str),
                    filter.agent.as_ref().map(AgentName::as_str),
                    filter.lane.as_ref().map(Lane::as_str),
                    filter.role.map(Role::as_str),
                    filter.after.as_ref().map(|after| int(after.created_at_ms)),
                    filter.after.as_ref().map(|after| after.run.as_str()),
                ],
                read_run,
            )
        })
        .await
    }

    pub(crate) async fn run_marks(&self, runs: &[RunId]) -> Result<Vec<RunMark>, Error> {
        let wanted = to_json(&runs);
        let sql = "SELECT runs.id, runs.last_seq, runs.state FROM json_each(?) AS wanted \
                   JOIN runs ON runs.id = wanted.value";
        self.read(move |connection| {
            all(connection, sql, params![wanted], |row| {
                let run: String = row.get("id")?;
                Ok(RunMark {
                    run: parse(&run, "id", &run)?,
                    last_seq: uint(row.get("last_seq")?),
                    state: parse_state(&run, &row.get::<_, String>("state")?)?,
                })
            })
        })
        .await
    }

    pub(crate) async fn attempts(&self, run: &RunId) -> Result<Vec<AttemptRecord>, Error> {
        let run = run.clone();
        let sql = "SELECT number, node, seal, outcome, started_at, ended_at FROM attempts WHERE run = ? \
                   ORDER BY number";
        self.read(move |connection| {
            all(connection, sql, params![run.as_str()], |row| read_attempt(run.as_str(), row))
        })
        .await
    }

    pub(crate) async fn state_counts(&self, now_ms: u64) -> Result<StateCounts, Error> {
        self.read(move |connection| {
            let sql = "SELECT state, count(*) AS runs FROM runs GROUP BY state";
            let counts = all(connection, sql, [], |row| {
                Ok((parse_state("", &row.get::<_, String>("state")?)?, uint(row.get("runs")?)))
            })?;
            let sql = "SELECT min(created_at) FROM runs \
                       WHERE state = 'queued' AND not_before_ms <= ? AND claimable_by IS NULL";
            let oldest: Option<i64> = one(connection, sql, params![int(now_ms)], |row| Ok(row.get(0)?))?;
            Ok(StateCounts { counts, oldest_waiting_ms: oldest.map(uint) })
        })
        .await
    }
}

fn read_attempt(run: &str, row: &Row<'_>) -> Result<AttemptRecord, Error> {
    let outcome: Option<String> = row.get("outcome")?;
    let seal: Option<String> = row.get("seal")?;
    Ok(AttemptRecord {
        number: row.get("number")?,
        node: parse(run, "node", &row.get::<_, String>("node")?)?,
        seal: seal.map(|text| from_json(run, "seal", &text)).transpose()?,
        outcome: outcome.map(|text| from_json(run, "outcome", &text)).transpose()?,
        started_at_ms: uint(row.get("started_at")?),
        ended_at_ms: row.get::<_, Option<i64>>("ended_at")?.map(uint),
    })
}

fn read_run(row: &Row<'_>) -> Result<RunRecord, Error> {
    let run: String = row.get("id")?;
    let outcome: Option<String> = row.get("outcome")?;
    let seal: Option<String> = row.get("seal")?;
    let node: Option<String> = row.get("lease_node")?;
    Ok(RunRecord {
        request: from_json(&run, "request", &row.get::<_, String>("request")?)?,
        state: parse_state(&run, &row.get::<_, String>("state")?)?,
        attempts: row.get("attempts")?,
        outcome: outcome.map(|text| from_json(&run, "outcome", &text)).transpose()?,
        seal: seal.map(|text| from_json(&run, "seal", &text)).transpose()?,
        cancel_requested_at_ms: row.get::<_, Option<i64>>("cancel_requested_at")?.map(uint),
        letter: if row.get("dead_letter")? { Letter::Dead } else { Letter::None },
        node: node.map(|text| parse(&run, "lease_node", &text)).transpose()?,
        not_before_ms: uint(row.get("not_before_ms")?),
        last_seq: uint(row.get("last_seq")?),
        created_at_ms: uint(row.get("created_at")?),
        updated_at_ms: uint(row.get("updated_at")?),
        finished_at_ms: row.get::<_, Option<i64>>("finished_at")?.map(uint),
    })
}
