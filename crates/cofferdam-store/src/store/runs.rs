//! Reading and forgetting runs.

use cofferdam_core::{RunId, RunState};
use cofferdam_mandate::Mandate;

use super::fence::state_of;
use super::specs::last_run::refuse_if_needed;
use super::{Store, audit};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::page::{Page, most_page_bytes};
use crate::record::{AttemptRecord, Letter, RunCursor, RunFilter, RunMark, RunRecord, StateCounts};
use crate::session::{Row, Sql, values};
use crate::stored::parse;

/// A run with the seal of its last attempt.
macro_rules! runs {
    ($($condition:literal),*) => {
        runs!(of: "runs.*, attempts.seal", $($condition),*)
    };
    (of: $columns:literal, $($condition:literal),*) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM runs \
             LEFT JOIN attempts ON attempts.run = runs.id AND attempts.number = runs.attempts WHERE ",
            $($condition),*
        )
    };
}

macro_rules! newest {
    (owner: $owner:literal, state: $state:literal) => {
        newest!(of: "runs.*, attempts.seal", owner: $owner, state: $state)
    };
    // PostgreSQL ends the page itself. How long a request is it knows without reading it.
    (page, owner: $owner:literal, state: $state:literal) => {
        concat!(
            "SELECT * FROM (",
            newest!(
                of: "runs.*, attempts.seal, sum(octet_length(runs.request)) \
                     OVER (ORDER BY runs.created_at DESC, runs.id DESC) - octet_length(runs.request) AS before",
                owner: $owner,
                state: $state
            ),
            ") AS page WHERE before < ",
            most_page_bytes!(),
            " ORDER BY created_at DESC, id DESC"
        )
    };
    (of: $columns:literal, owner: $owner:literal, state: $state:literal) => {
        runs!(of: $columns,
            $owner,
            " AND ",
            $state,
            " AND (CAST(?3 AS text) IS NULL OR runs.project = ?3) AND (CAST(?4 AS text) IS NULL OR runs.agent = ?4) \
             AND (CAST(?5 AS text) IS NULL OR runs.lane = ?5) AND (CAST(?6 AS text) IS NULL OR runs.role = ?6) \
             AND (CAST(?7 AS bigint) IS NULL OR (runs.created_at, runs.id) < (?7, ?8)) \
             ORDER BY runs.created_at DESC, runs.id DESC LIMIT ?2"
        )
    };
}

const NEWEST: Sql = Sql::differs(
    newest!(owner: "CAST(?9 AS text) IS NULL", state: "runs.state IN (SELECT value FROM json_each(?1))"),
    newest!(page, owner: "CAST(?9 AS text) IS NULL", state: "runs.state = ANY(?1)"),
);
/// A statement of its own: only so does SQLite know that the index of one owner's runs has them in order.
const NEWEST_OF_OWNER: Sql = Sql::differs(
    newest!(owner: "runs.owner = ?9", state: "runs.state IN (SELECT value FROM json_each(?1))"),
    newest!(page, owner: "runs.owner = ?9", state: "runs.state = ANY(?1)"),
);
const MARKS: Sql = Sql::differs(
    "SELECT runs.id, runs.last_seq, runs.state FROM json_each(?1) AS wanted JOIN runs ON runs.id = wanted.value",
    "SELECT id, last_seq, state FROM runs WHERE id = ANY(?1)",
);

impl Store {
    /// Everything about a run but its events.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn run(&self, run: &RunId) -> Result<RunRecord, Error> {
        const SQL: &str = runs!("runs.id = ?1");
        let id = run.clone();
        let found =
            self.read(async move |session| session.optional(SQL, values![&id], read_run).await).await?;
        found.ok_or_else(|| Error::NotFound { run: run.clone() })
    }

    /// The newest runs, newest first, however long they are together.
    ///
    /// # Errors
    /// If the database fails or a run cannot be read.
    pub async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, Error> {
        let mut filter = filter.clone();
        let mut runs: Vec<RunRecord> = Vec::new();
        loop {
            let page = self.runs_page(&filter).await?;
            let is_full = page.is_full(filter.newest);
            filter.newest = filter.newest.saturating_sub(u32::try_from(page.rows.len()).unwrap_or(u32::MAX));
            runs.extend(page.rows);
            match runs.last().filter(|_| is_full && filter.newest > 0) {
                Some(last) => {
                    filter.after =
                        Some(RunCursor { created_at_ms: last.created_at_ms, run: last.request.id.clone() });
                }
                None => return Ok(runs),
            }
        }
    }

    /// The newest runs, newest first: no more than a page holds.
    ///
    /// # Errors
    /// If the database fails or a run cannot be read.
    pub async fn runs_page(&self, filter: &RunFilter) -> Result<Page<RunRecord>, Error> {
        let filter = filter.clone();
        self.read(async move |session| {
            let RunFilter { newest, owner, states, project, agent, lane, role, after } = &filter;
            let states: &[RunState] = if states.is_empty() { &RunState::ALL } else { states };
            session
                .page(
                    if owner.is_some() { NEWEST_OF_OWNER } else { NEWEST },
                    values![
                        Some(states.iter().map(|state| state.as_str().to_owned()).collect::<Vec<_>>()),
                        *newest,
                        project.as_ref(),
                        agent.as_ref(),
                        lane.as_ref(),
                        role.map(|role| role.as_str()),
                        after.as_ref().map(|after| after.created_at_ms),
                        after.as_ref().map(|after| &after.run),
                        owner.as_ref(),
                    ],
                    |row| Ok((read_run(row)?, row.bytes("request")?)),
                )
                .await
        })
        .await
    }

    /// How far each of these runs is; one that is not on record is left out.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn run_marks(&self, runs: &[RunId]) -> Result<Vec<RunMark>, Error> {
        let wanted: Vec<String> = runs.iter().map(ToString::to_string).collect();
        self.read(async move |session| session.all(MARKS, values![Some(wanted.clone())], read_mark).await)
            .await
    }

    /// The run's attempts, the first one first.
    ///
    /// # Errors
    /// If the database fails or an attempt cannot be read.
    pub async fn attempts(&self, run: &RunId) -> Result<Vec<AttemptRecord>, Error> {
        const SQL: &str = "SELECT number, node, seal, outcome, started_at, ended_at FROM attempts WHERE run = ?1 \
                   ORDER BY number";
        let run = run.clone();
        self.read(async move |session| {
            session.all(SQL, values![&run], |row| read_attempt(run.as_str(), row)).await
        })
        .await
    }

    /// How many runs are in each state.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn state_counts(&self, now_ms: u64) -> Result<StateCounts, Error> {
        self.read(async move |session| {
            let sql = "SELECT state, count(*) AS runs FROM runs GROUP BY state";
            let counts = session.all(sql, &[], |row| Ok((row.state("")?, row.get("runs")?))).await?;
            let sql = "SELECT min(created_at) FROM runs \
                       WHERE state = 'queued' AND not_before_ms <= ?1 AND claimable_by IS NULL";
            let oldest_waiting_ms = session.one(sql, values![now_ms], |row| row.first()).await?;
            Ok(StateCounts { counts, oldest_waiting_ms })
        })
        .await
    }

    /// Forgets a run that has ended, with its events, messages and artifact records. Files are not touched.
    ///
    /// # Errors
    /// [`Error::NotFinal`] or [`Error::NotFound`], and [`Error::RunOfSpec`] for the last run of a spec that is not put away.
    pub async fn remove_run(&self, mandate: &Mandate, run: &RunId) -> Result<(), Error> {
        let (mandate, run) = (mandate.clone(), run.clone());
        self.write(async move |session| {
            let state = state_of(session, &run).await?;
            if !state.is_final() {
                return Err(Error::NotFinal { run: run.clone(), state });
            }
            refuse_if_needed(session, &run).await?;
            // Its attempts, events, messages and artifacts go with it.
            session.execute("DELETE FROM runs WHERE id = ?1", values![&run]).await?;
            audit::record(session, &mandate).await
        })
        .await?;
        failpoint("store.remove_run");
        Ok(())
    }
}

fn read_mark(row: Row<'_>) -> Result<RunMark, Error> {
    let run: String = row.get("id")?;
    Ok(RunMark { run: parse(&run, "id", &run)?, last_seq: row.get("last_seq")?, state: row.state(&run)? })
}

fn read_attempt(run: &str, row: Row<'_>) -> Result<AttemptRecord, Error> {
    Ok(AttemptRecord {
        number: row.get("number")?,
        node: row.parse(run, "node", "node")?,
        seal: row.json_some(run, "seal", "seal")?,
        outcome: row.json_some(run, "outcome", "outcome")?,
        started_at_ms: row.get("started_at")?,
        ended_at_ms: row.get("ended_at")?,
    })
}

fn read_run(row: Row<'_>) -> Result<RunRecord, Error> {
    let run: String = row.get("id")?;
    Ok(RunRecord {
        request: row.json(&run, "request", "request")?,
        owner: row.parse(&run, "owner", "owner")?,
        state: row.state(&run)?,
        attempts: row.get("attempts")?,
        outcome: row.json_some(&run, "outcome", "outcome")?,
        seal: row.json_some(&run, "seal", "seal")?,
        cancel_requested_at_ms: row.get("cancel_requested_at")?,
        letter: if row.get("dead_letter")? { Letter::Dead } else { Letter::None },
        node: row.parse_some(&run, "lease_node", "lease_node")?,
        not_before_ms: row.get("not_before_ms")?,
        last_seq: row.get("last_seq")?,
        created_at_ms: row.get("created_at")?,
        updated_at_ms: row.get("updated_at")?,
        finished_at_ms: row.get("finished_at")?,
        events_removed_at_ms: row.get("events_removed_at")?,
        files_removed_at_ms: row.get("files_removed_at")?,
    })
}
