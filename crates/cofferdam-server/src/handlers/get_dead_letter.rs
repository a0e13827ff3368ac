//! `GET /api/v1/dead-letters/{run}`.

use axum::Json;
use cofferdam_api::{DeadLetterResponse, RunIdText};
use cofferdam_core::RunId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Path;
use crate::wire;

/// What is kept of a run that failed for good.
#[utoipa::path(get, path = "/api/v1/dead-letters/{run}", tag = "dead letters", params(("run" = inline(RunIdText), Path)), responses(
    (status = 200, description = "The letter.", body = DeadLetterResponse),
    (status = 404, description = "The run is no dead letter.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_dead_letter(
    By(actor, app): By,
    Path(run): Path<RunId>,
) -> Answer<DeadLetterResponse> {
    Ok(Json(wire::letter(app.operations().read_dead_letter(&actor, &run).await?)))
}
