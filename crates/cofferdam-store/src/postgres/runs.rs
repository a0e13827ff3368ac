//! Reads runs.

use cofferdam_core::{AgentName, Lane, ProjectId, Role, RunId, RunState};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{Postgres, count, from_json, int, number, parse, parse_state, some_number, uint};
use crate::error::Error;
use crate::record::{AttemptRecord, Letter, RunFilter, RunMark, RunRecord, StateCounts};

const ONE: &str = "SELECT runs.*, attempts.seal FROM runs \
                   LEFT JOIN attempts ON attempts.run = runs.id AND attempts.number = runs.attempts \
                   WHERE runs.id = $1";
const NEWEST: &str = "SELECT runs.*, attempts.seal FROM runs \
                      LEFT JOIN attempts ON attempts.run = runs.id AND attempts.number = runs.attempts \
                      WHERE runs.state = ANY($1) \
                      AND ($3::text IS NULL OR runs.project = $3) AND ($4::text IS NULL OR runs.agent = $4) \
                      AND ($5::text IS NULL OR runs.lane = $5) AND ($6::text IS NULL OR runs.role = $6) \
                      AND ($7::bigint IS NULL OR (runs.created_at, runs.id) < ($7, $8)) \
                      ORDER BY runs.created_at DESC, runs.id DESC LIMIT $2";

impl Postgres {
    pub(crate) async fn run(&self, run: &RunId) -> Result<RunRecord, Error> {
        let row = self
            .read(|mut session| async move {
                Ok(session.query(ONE).bind(run.as_str()).fetch_optional(session.connection()).await?)
            })
            .await?;
        read_run(&row.ok_or_else(|| Error::NotFound { run: run.clone() })?)
    }

    pub(crate) async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, Error> {
        let states: &[RunState] = if filter.states.is_empty() { &RunState::ALL } else { &filter.states };
        let states: &[&str] = &states.iter().map(|state| state.as_str()).collect::<Vec<_>>();
        let rows = self
            .read(|mut session| async move {
                Ok(session
                    .query(NEWEST)
                    .bind(states)
                    .bind(i64::from(filter.newest))
                    .bind(filter.project.as_ref().map(ProjectId::as_str))
                    .bind(filter.agent.as_ref().map(AgentName::as_str))
                    .bind(filter.lane.as_ref().map(Lane::as_str))
                    .bind(filter.role.map(Role::as_str))
                    .bind(filter.after.as_ref().map(|after| int(after.created_at_ms)))
                    .bind(filter.after.as_ref().map(|after| after.run.as_str()))
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        rows.iter().map(read_run).collect()
    }

    pub(crate) async fn run_marks(&self, runs: &[RunId]) -> Result<Vec<RunMark>, Error> {
        let wanted: &[&str] = &runs.iter().map(RunId::as_str).collect::<Vec<_>>();
        let rows = self
            .read(|mut session| async move {
                Ok(session
                    .query("SELECT id, last_seq, state FROM runs WHERE id = ANY($1)")
                    .bind(wanted)
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        let read = |row: &PgRow| {
            let run: &str = row.try_get("id")?;
            Ok(RunMark {
                run: parse(run, "id", run)?,
                last_seq: number(row, "last_seq")?,
                state: parse_state(run, row.try_get("state")?)?,
            })
        };
        rows.iter().map(read).collect()
    }

    pub(crate) async fn attempts(&self, run: &RunId) -> Result<Vec<AttemptRecord>, Error> {
        let rows = self
            .read(|mut session| async move {
                Ok(session
                    .query(
                        "SELECT number, node, seal, outcome, started_at, ended_at FROM attempts \
                         WHERE run = $1 ORDER BY number",
                    )
                    .bind(run.as_str())
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        rows.iter().map(|row| read_attempt(run.as_str(), row)).collect()
    }

    pub(crate) async fn state_counts(&self, now_ms: u64) -> Result<StateCounts, Error> {
        let (rows, oldest) = self
            .read(|mut session| async move {
                let rows = session
                    .query("SELECT state, count(*) AS runs FROM runs GROUP BY state")
                    .fetch_all(session.connection())
                    .await?;
                let oldest: Option<i64> = session
                    .scalar(
                        "SELECT min(created_at) FROM runs \
                         WHERE state = 'queued' AND not_before_ms <= $1 AND claimable_by IS NULL",
                    )
                    .bind(int(now_ms))
                    .fetch_one(session.connection())
                    .await?;
                Ok((rows, oldest))
            })
            .await?;
        let read = |row: &PgRow| Ok((parse_state("", row.try_get("state")?)?, number(row, "runs")?));
        let counts = rows.iter().map(read).collect::<Result<_, Error>>()?;
        Ok(StateCounts { counts, oldest_waiting_ms: oldest.map(uint) })
    }
}

fn read_attempt(run: &str, row: &PgRow) -> Result<AttemptRecord, Error> {
    let outcome: Option<&str> = row.try_get("outcome")?;
    let seal: Option<&str> = row.try_get("seal")?;
    Ok(AttemptRecord {
        number: count(row, "number")?,
        node: parse(run, "node", row.try_get("node")?)?,
        seal: seal.map(|text| from_json(run, "seal", text)).transpose()?,
        outcome: outcome.map(|text| from_json(run, "outcome", text)).transpose()?,
        started_at_ms: number(row, "started_at")?,
        ended_at_ms: some_number(row, "ended_at")?,
    })
}

fn read_run(row: &PgRow) -> Result<RunRecord, Error> {
    let run: &str = row.try_get("id")?;
    let outcome: Option<&str> = row.try_get("outcome")?;
    let seal: Option<&str> = row.try_get("seal")?;
    let node: Option<&str> = row.try_get("lease_node")?;
    Ok(RunRecord {
        request: from_json(run, "request", row.try_get("request")?)?,
        state: parse_state(run, row.try_get("state")?)?,
        attempts: count(row, "attempts")?,
        outcome: outcome.map(|text| from_json(run, "outcome", text)).transpose()?,
        seal: seal.map(|text| from_json(run, "seal", text)).transpose()?,
        cancel_requested_at_ms: some_number(row, "cancel_requested_at")?,
        letter: if row.try_get("dead_letter")? { Letter::Dead } else { Letter::None },
        node: node.map(|text| parse(run, "lease_node", text)).transpose()?,
        not_before_ms: number(row, "not_before_ms")?,
        last_seq: number(row, "last_seq")?,
        created_at_ms: number(row, "created_at")?,
        updated_at_ms: number(row, "updated_at")?,
        finished_at_ms: some_number(row, "finished_at")?,
    })
}
