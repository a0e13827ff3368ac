//! Reads runs.

use cofferdam_core::{RunId, RunState};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Sqlite, from_json, parse, parse_state, to_json, uint};
use crate::error::Error;
use crate::record::{Letter, RunFilter, RunRecord};

const ONE: &str = "SELECT runs.*, attempts.seal FROM runs \
                   LEFT JOIN attempts ON attempts.run = runs.id AND attempts.number = runs.attempts \
                   WHERE runs.id = ?";
const NEWEST: &str = "SELECT runs.*, attempts.seal FROM runs \
                      LEFT JOIN attempts ON attempts.run = runs.id AND attempts.number = runs.attempts \
                      WHERE runs.state IN (SELECT value FROM json_each(?1)) \
                      ORDER BY runs.created_at DESC, runs.id DESC LIMIT ?2";

impl Sqlite {
    pub(crate) async fn run(&self, run: &RunId) -> Result<RunRecord, Error> {
        let row = sqlx::query(ONE).bind(run.as_str()).fetch_optional(self.readers()).await?;
        read_run(&row.ok_or_else(|| Error::NotFound { run: run.clone() })?)
    }

    pub(crate) async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, Error> {
        let states: &[RunState] = if filter.states.is_empty() { &RunState::ALL } else { &filter.states };
        let rows =
            sqlx::query(NEWEST).bind(to_json(&states)).bind(filter.newest).fetch_all(self.readers()).await?;
        rows.iter().map(read_run).collect()
    }
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
