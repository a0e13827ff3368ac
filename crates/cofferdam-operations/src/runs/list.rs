//! Listing runs.

use std::str::FromStr;

use cofferdam_core::{
    Action, Actor, IdError, InputError, ProjectId, RunListInput, RunState, Subject, ValueError,
};
use cofferdam_store::{RunCursor, RunFilter, RunRecord};

use crate::Operations;
use crate::error::Error;

/// Runs of one page, if nobody says.
const USUAL: u32 = 50;
/// The most runs of one page.
const MOST: u32 = 500;

/// A page of runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<RunRecord>,
    /// What to pass for the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

impl Operations {
    /// The runs that an actor may see, the newest first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_runs(&self, actor: &Actor, input: &RunListInput) -> Result<RunPage, Error> {
        self.authorise(actor, Action::ListRuns, "", Subject::Nothing).await?;
        let filter = RunFilter { owner: self.only_owner(actor), ..filter_of(input)? };
        let page = self.store.runs_page(&filter).await?;
        let next_cursor = page.rows.last().filter(|_| page.is_full(filter.newest)).map(cursor_of);
        Ok(RunPage { runs: page.rows, next_cursor })
    }

    /// Every run that an actor may see, the newest first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_all_runs(&self, actor: &Actor) -> Result<Vec<RunRecord>, Error> {
        self.authorise(actor, Action::ListRuns, "", Subject::Nothing).await?;
        let filter = RunFilter { owner: self.only_owner(actor), ..RunFilter::newest(u32::MAX) };
        Ok(self.store.list_runs(&filter).await?)
    }
}

fn filter_of(input: &RunListInput) -> Result<RunFilter, InputError> {
    let limit = input.limit.unwrap_or(USUAL);
    if limit == 0 || limit > MOST {
        return Err(InputError::out_of_range("limit", 1, u64::from(MOST)));
    }
    Ok(RunFilter {
        states: input.state.as_deref().map(states).transpose()?.unwrap_or_default(),
        project: input.project_id.as_deref().map(project).transpose()?,
        agent: parsed("agent", input.agent.as_deref())?,
        lane: parsed("lane", input.lane.as_deref())?,
        role: parsed("role", input.role.as_deref())?,
        after: input.cursor.as_deref().map(cursor).transpose()?,
        ..RunFilter::newest(limit)
    })
}

fn parsed<T: FromStr<Err = ValueError>>(
    field: &'static str,
    text: Option<&str>,
) -> Result<Option<T>, InputError> {
    text.map(str::parse).transpose().map_err(|error| InputError::of_value(field, error))
}

fn project(text: &str) -> Result<ProjectId, InputError> {
    text.parse().map_err(|error: IdError| {
        InputError::invalid("project_id", error.to_string(), "GET /api/v1/projects lists the ids")
    })
}

fn states(text: &str) -> Result<Vec<RunState>, InputError> {
    let parsed: Option<Vec<RunState>> = text.split(',').map(RunState::parse).collect();
    let known = RunState::ALL.map(RunState::as_str).join(", ");
    parsed.ok_or_else(|| {
        InputError::invalid("state", "there is no such state", format!("write some of: {known}"))
    })
}

fn cursor_of(record: &RunRecord) -> String {
    format!("{}.{}", record.created_at_ms, record.request.id)
}

fn cursor(text: &str) -> Result<RunCursor, InputError> {
    let parts = text.split_once('.');
    let parsed = parts.and_then(|(at, run)| {
        // The store's times are signed.
        let created_at_ms = at.parse::<i64>().ok().and_then(|at| u64::try_from(at).ok())?;
        Some(RunCursor { created_at_ms, run: run.parse().ok()? })
    });
    parsed.ok_or_else(|| {
        InputError::invalid("cursor", "it is not one of ours", "pass `next_cursor` of the page before")
    })
}
