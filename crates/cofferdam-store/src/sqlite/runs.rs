//! Reads runs.

use cofferdam_core::{AgentName, Lane, ProjectId, Role, RunId, RunState};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Sqlite, from_json, int, parse, parse_state, to_json, uint};
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
        let row = sqlx::query(ONE).bind(run.as_str()).fetch_optional(self.readers()).await?;
        read_run(&row.ok_or_else(|| Error::NotFound { run: run.clone() })?)
    }

    pub(crate) async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, Error> {
        let states: &[RunState] = if filter.states.is_empty() { &RunState::ALL } else { &filter.states };
        let rows = sqlx::query(NEWEST)
            .bind(to_json(&states))
            .bind(filter.newest)
            .bind(filter.project.as_ref().map(ProjectId::as_str))
            .bind(filter.agent.as_ref().map(AgentName::as_str))
            .bind(filter.lane.as_ref().map(Lane::as_str))
            .bind(filter.role.map(Role::as_str))
            .bind(filter.after.as_ref().map(|after| int(after.created_at_ms)))
            .bind(filter.after.as_ref().map(|after| after.run.as_str()))
            .fetch_all(self.readers())
            .await?;
        rows.iter().map(read_run).collect()
    }

    pub(crate) async fn run_marks(&self, runs: &[RunId]) -> Result<Vec<RunMark>, Error> {
        let rows = sqlx::query(
            "SELECT runs.id, runs.last_seq, runs.state FROM json_each(?) AS wanted \
             JOIN runs ON runs.id = wanted.value",
        )
        .bind(to_json(&runs))
        .fetch_all(self.readers())
        .await?;
        let read = |row: &SqliteRow| {
            let run: &str = row.try_get("id")?;
            Ok(RunMark {
                run: parse(run, "id", run)?,
                last_seq: uint(row.try_get("last_seq")?),
                state: parse_state(run, row.try_get("state")?)?,
            })
        };
        rows.iter().map(read).collect()
    }

    pub(crate) async fn attempts(&self, run: &RunId) -> Result<Vec<AttemptRecord>, Error> {
        let rows = sqlx::query(
            "SELECT number, node, seal, outcome, started_at, ended_at FROM attempts WHERE run = ? ORDER BY number",
        )
        .bind(run.as_str())
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(|row| read_attempt(run.as_str(), row)).collect()
    }

    pub(crate) async fn state_counts(&self, now_ms: u64) -> Result<StateCounts, Error> {
        let rows = sqlx::query("SELECT state, count(*) AS runs FROM runs GROUP BY state")
            .fetch_all(self.readers())
            .await?;
        let read = |row: &SqliteRow| {
            Ok((parse_state("", row.try_get("state")?)?, uint(row.try_get::<i64, _>("runs")?)))
        };
        let counts = rows.iter().map(read).collect::<Result<_, Error>>()?;
        let oldest: Option<i64> = sqlx::query_scalar(
            "SELECT min(created_at) FROM runs WHERE state = 'queued' AND not_before_ms <= ? AND claimable_by IS NULL",
        )
        .bind(int(now_ms))
        .fetch_one(self.readers())
        .await?;
        Ok(StateCounts { counts, oldest_waiting_ms: oldest.map(uint) })
    }
}

fn read_attempt(run: &str, row: &SqliteRow) -> Result<AttemptRecord, Error> {
    let outcome: Option<&str> = row.try_get("outcome")?;
    let seal: Option<&str> = row.try_get("seal")?;
    Ok(AttemptRecord {
        number: row.try_get("number")?,
        node: parse(run, "node", row.try_get("node")?)?,
        seal: seal.map(|text| from_json(run, "seal", text)).transpose()?,
        outcome: outcome.map(|text| from_json(run, "outcome", text)).transpose()?,
        started_at_ms: uint(row.try_get("started_at")?),
        ended_at_ms: row.try_get::<Option<i64>, _>("ended_at")?.map(uint),
    })
}

fn read_run(row: &SqliteRow) -> Result<RunRecord, Error> {
    let run: &str = row.try_get("id")?;
    let outcome: Option<&str> = row.try_get("outcome")?;
    let seal: Option<&str> = row.try_get("seal")?;
    let node: Option<&str> = row.try_get("lease_node")?;
    Ok(RunRecord {
        request: from_json(run, "request", row.try_get("request")?)?,
        state: parse_state(run, row.try_get("state")?)?,
        attempts: row.try_get("attempts")?,
        outcome: outcome.map(|text| from_json(run, "outcome", text)).transpose()?,
        seal: seal.map(|text| from_json(run, "seal", text)).transpose()?,
        cancel_requested_at_ms: row.try_get::<Option<i64>, _>("cancel_requested_at")?.map(uint),
        letter: if row.try_get("dead_letter")? { Letter::Dead } else { Letter::None },
        node: node.map(|text| parse(run, "lease_node", text)).transpose()?,
        not_before_ms: uint(row.try_get("not_before_ms")?),
        last_seq: uint(row.try_get("last_seq")?),
        created_at_ms: uint(row.try_get("created_at")?),
        updated_at_ms: uint(row.try_get("updated_at")?),
        finished_at_ms: row.try_get::<Option<i64>, _>("finished_at")?.map(uint),
    })
}
