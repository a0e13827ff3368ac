//! `GET /api/v1/runs`.

use axum::Json;
use cofferdam_api::{RunList, RunQuery, RunResponse};

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Query;
use crate::wire;

/// The runs, the newest first.
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs", params(RunQuery), responses(
    (status = 200, description = "A page of them.", body = RunList),
))]
pub(crate) async fn list_runs(By(actor, app): By, Query(query): Query<RunQuery>) -> Answer<RunList> {
    let page = app.operations().list_runs(&actor, &query).await?;
    let runs = page.runs.into_iter().map(|record| RunResponse { seal: None, ..wire::run(record) });
    Ok(Json(RunList { runs: runs.collect(), next_cursor: page.next_cursor }))
}
