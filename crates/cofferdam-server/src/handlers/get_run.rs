//! `GET /api/v1/runs/{id}`.

use axum::Json;
use cofferdam_api::{RunIdText, RunResponse};
use cofferdam_core::RunId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Path;
use crate::wire;

/// Everything about a run but its events.
#[utoipa::path(get, path = "/api/v1/runs/{id}", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "The run.", body = RunResponse),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_run(By(actor, app): By, Path(id): Path<RunId>) -> Answer<RunResponse> {
    Ok(Json(wire::run(app.operations().read_run(&actor, &id).await?)))
}
