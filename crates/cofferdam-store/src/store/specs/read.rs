//! Reads specs, with their phases and their last run: in one statement, so that the three fit together and the status that
//! follows from them is one that the spec had.

use cofferdam_core::{Phase, PhaseRecord, RunRequest, Spec, SpecId, SpecRun};

use crate::error::Error;
use crate::session::{Row, Session, Sql, values};
use crate::spec::SpecList;
use crate::store::Store;
use crate::stored::{parse, parse_state};

/// A row for each phase of each spec, and one for a spec that has none.
macro_rules! specs {
    (accepted: $accepted:literal, which: $($which:literal),+) => {
        concat!(
            "SELECT specs.*, spec_phases.phase, spec_phases.state AS phase_state, spec_phases.tries, \
             spec_phases.output, spec_phases.score, spec_phases.reasons, spec_phases.decision, \
             spec_phases.run AS phase_run, spec_phases.updated_at AS phase_updated_at, \
             last.id AS last_run, last.state AS last_state FROM (SELECT * FROM specs WHERE ",
            $($which,)+
            ") AS specs LEFT JOIN spec_phases ON spec_phases.spec = specs.id \
             LEFT JOIN runs AS last ON last.id = \
             (SELECT runs.id FROM runs WHERE runs.spec = specs.id ORDER BY runs.",
            $accepted,
            " DESC LIMIT 1) ORDER BY specs.created_at DESC, specs.id DESC"
        )
    };
}
macro_rules! newest {
    (accepted: $accepted:literal) => {
        specs!(
            accepted: $accepted,
            which: "archived = ?1 AND (CAST(?2 AS text) IS NULL OR owner = ?2) \
             AND (CAST(?3 AS text) IS NULL OR project = ?3) \
             AND (CAST(?4 AS bigint) IS NULL OR (created_at, id) < (?4, ?5)) \
             ORDER BY created_at DESC, id DESC LIMIT ?6"
        )
    };
}
macro_rules! runs_of_spec {
    ($columns:literal, accepted: $accepted:literal) => {
        concat!("SELECT ", $columns, " FROM runs WHERE spec = ?1 ORDER BY ", $accepted, " DESC LIMIT ?2")
    };
}

const ONE: Sql =
    Sql::differs(specs!(accepted: "rowid", which: "id = ?1"), specs!(accepted: "accepted", which: "id = ?1"));
const NEWEST: Sql = Sql::differs(newest!(accepted: "rowid"), newest!(accepted: "accepted"));
const RUNS: Sql = Sql::differs(
    runs_of_spec!("id, state", accepted: "rowid"),
    runs_of_spec!("id, state", accepted: "accepted"),
);
const REQUESTS: Sql = Sql::differs(
    runs_of_spec!("id, request", accepted: "rowid"),
    runs_of_spec!("id, request", accepted: "accepted"),
);

impl Store {
    /// A spec, if there is one of this id.
    ///
    /// # Errors
    /// If the database fails or the spec cannot be read.
    pub async fn spec(&self, id: &SpecId) -> Result<Option<Spec>, Error> {
        let id = id.clone();
        self.read(async move |session| one(session, &id).await).await
    }

    /// Specs, the newest first.
    ///
    /// # Errors
    /// If the database fails or a spec cannot be read.
    pub async fn specs(&self, list: &SpecList) -> Result<Vec<Spec>, Error> {
        let list = list.clone();
        self.read(async move |session| {
            let SpecList { of, project, archived, before, limit } = &list;
            let values = values![
                *archived,
                of.as_ref(),
                project.as_ref(),
                before.as_ref().map(|(created_at_ms, _)| *created_at_ms),
                before.as_ref().map(|(_, id)| id),
                *limit,
            ];
            Ok(joined(session.all(NEWEST, values, read_row).await?))
        })
        .await
    }

    /// The runs that worked, or work, on a spec, the newest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn spec_runs(&self, id: &SpecId) -> Result<Vec<SpecRun>, Error> {
        let id = id.clone();
        let read = |row: Row<'_>| {
            let run: String = row.get("id")?;
            Ok(SpecRun { run: parse(&run, "id", &run)?, state: row.state(&run)? })
        };
        self.read(async move |session| session.all(RUNS, values![&id, i64::MAX], read).await).await
    }

    /// What was asked of the last run of a spec: the next one goes on with the same policy. `None` if it had no run.
    ///
    /// # Errors
    /// If the database fails or the request cannot be read.
    pub async fn spec_request(&self, id: &SpecId) -> Result<Option<RunRequest>, Error> {
        let id = id.clone();
        let read = |row: Row<'_>| row.json(&row.get::<String>("id")?, "request", "request");
        self.read(async move |session| session.optional(REQUESTS, values![&id, 1_u32], read).await).await
    }
}

pub(super) async fn one(session: &mut Session<'_>, id: &SpecId) -> Result<Option<Spec>, Error> {
    Ok(joined(session.all(ONE, values![id], read_row).await?).pop())
}

/// Puts the rows of each spec together; they follow each other.
fn joined(rows: Vec<(Spec, Option<(Phase, PhaseRecord)>)>) -> Vec<Spec> {
    let mut specs: Vec<Spec> = Vec::new();
    for (spec, phase) in rows {
        if specs.last().is_none_or(|last| last.id != spec.id) {
            specs.push(spec);
        }
        if let (Some(last), Some((phase, record))) = (specs.last_mut(), phase) {
            last.phases.insert(phase, record);
        }
    }
    specs
}

/// A spec without its phases, and one of them.
fn read_row(row: Row<'_>) -> Result<(Spec, Option<(Phase, PhaseRecord)>), Error> {
    let id: String = row.get("id")?;
    let last_run = match row.get::<Option<String>>("last_run")? {
        Some(run) => {
            let state = parse_state(&run, &row.get::<String>("last_state")?)?;
            Some(SpecRun { run: parse(&id, "last run", &run)?, state })
        }
        None => None,
    };
    let spec = Spec {
        owner: row.parse(&id, "owner", "owner")?,
        project: row.parse_some(&id, "project", "project")?,
        title: row.get("title")?,
        description: row.get("description")?,
        phases_version: row.get("phases_version")?,
        plan: row.json(&id, "plan", "plan")?,
        phases: std::collections::BTreeMap::new(),
        last_run,
        version: row.get("version")?,
        revision: row.get("revision")?,
        is_archived: row.get("archived")?,
        created_at_ms: row.get("created_at")?,
        updated_at_ms: row.get("updated_at")?,
        id: parse(&id, "id", &id)?,
    };
    Ok((spec, read_phase(&id, row)?))
}

fn read_phase(id: &str, row: Row<'_>) -> Result<Option<(Phase, PhaseRecord)>, Error> {
    let Some(phase) = row.parse_some(id, "phase", "phase")? else { return Ok(None) };
    let record = PhaseRecord {
        state: row.parse(id, "state of a phase", "phase_state")?,
        tries: row.get("tries")?,
        output: row.json_some(id, "output", "output")?,
        score: row.get("score")?,
        reasons: row.json(id, "reasons", "reasons")?,
        decision: row.json_some(id, "decision", "decision")?,
        run: row.parse_some(id, "run of a phase", "phase_run")?,
        updated_at_ms: row.get("phase_updated_at")?,
    };
    Ok(Some((phase, record)))
}
