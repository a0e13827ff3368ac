//! `GET /api/v1/runs`.

use std::str::FromStr;

use axum::Json;
use axum::extract::State;
use cofferdam_api::{MOST_RUNS, RunList, RunQuery, RunResponse};
use cofferdam_core::{IdError, ProjectId, RunState, ValueError};
use cofferdam_store::{RunCursor, RunFilter, RunRecord};

use crate::access::{May, Read};
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::Query;
use crate::wire;

const USUAL: u32 = 50;

/// The runs, the newest first.
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs", params(RunQuery), responses(
    (status = 200, description = "A page of them.", body = RunList),
))]
pub(crate) async fn list_runs(
    _may: May<Read>,
    State(app): State<App>,
    Query(query): Query<RunQuery>,
) -> Result<Json<RunList>, ApiError> {
    let filter = filter_of(&query)?;
    let records = app.store().list_runs(&filter).await?;
    // One that is not full is the last. A full one may be the last as well, and then the next is empty.
    let is_full = u32::try_from(records.len()).is_ok_and(|read| read == filter.newest);
    let next_cursor = records.last().filter(|_| is_full).map(cursor_of);
    let runs = records.into_iter().map(|record| RunResponse { seal: None, ..wire::run(record) });
    Ok(Json(RunList { runs: runs.collect(), next_cursor }))
}

fn filter_of(query: &RunQuery) -> Result<RunFilter, ApiError> {
    let limit = query.limit.unwrap_or(USUAL);
    if limit == 0 || limit > MOST_RUNS {
        return Err(ApiError::invalid_field(
            "limit",
            "it is out of its bounds",
            "write a number from 1 to 500",
        ));
    }
    Ok(RunFilter {
        newest: limit,
        states: query.state.as_deref().map(states).transpose()?.unwrap_or_default(),
        project: query.project_id.as_deref().map(project).transpose()?,
        agent: parsed("agent", query.agent.as_deref())?,
        lane: parsed("lane", query.lane.as_deref())?,
        role: parsed("role", query.role.as_deref())?,
        after: query.cursor.as_deref().map(cursor).transpose()?,
    })
}

fn parsed<T: FromStr<Err = ValueError>>(field: &str, text: Option<&str>) -> Result<Option<T>, ApiError> {
    text.map(str::parse).transpose().map_err(|error| ApiError::invalid(field, &error))
}

fn project(text: &str) -> Result<ProjectId, ApiError> {
    text.parse().map_err(|error: IdError| {
        ApiError::invalid_field("project_id", &error.to_string(), "GET /api/v1/projects lists the ids")
    })
}

fn states(text: &str) -> Result<Vec<RunState>, ApiError> {
    let parsed: Option<Vec<RunState>> = text.split(',').map(RunState::parse).collect();
    let known = RunState::ALL.map(RunState::as_str).join(", ");
    parsed.ok_or_else(|| {
        ApiError::invalid_field("state", "there is no such state", &format!("write some of: {known}"))
    })
}

fn cursor_of(record: &RunRecord) -> String {
    format!("{}.{}", record.created_at_ms, record.request.id)
}

fn cursor(text: &str) -> Result<RunCursor, ApiError> {
    let parts = text.split_once('.');
    let parsed = parts.and_then(|(at, run)| {
        // The store's times are signed.
        let created_at_ms = at.parse::<i64>().ok().and_then(|at| u64::try_from(at).ok())?;
        Some(RunCursor { created_at_ms, run: run.parse().ok()? })
    });
    parsed.ok_or_else(|| {
        ApiError::invalid_field("cursor", "it is none of ours", "pass `next_cursor` of the page before")
    })
}
