//! `GET /api/v1/runs`.

use axum::Json;
use axum::extract::State;
use cofferdam_api::{RunList, RunQuery, RunResponse};
use cofferdam_operations::RunListInput;

use crate::access::By;
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::Query;
use crate::wire;

/// The runs, the newest first.
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs", params(RunQuery), responses(
    (status = 200, description = "A page of them.", body = RunList),
))]
pub(crate) async fn list_runs(
    By(actor): By,
    State(app): State<App>,
    Query(query): Query<RunQuery>,
) -> Result<Json<RunList>, ApiError> {
    let RunQuery { limit, state, project_id, agent, lane, role, cursor } = query;
    let input = RunListInput { limit, state, project_id, agent, lane, role, cursor };
    let page = app.operations().list_runs(&actor, &input).await?;
    let runs = page.runs.into_iter().map(|record| RunResponse { seal: None, ..wire::run(record) });
    Ok(Json(RunList { runs: runs.collect(), next_cursor: page.next_cursor }))
}
