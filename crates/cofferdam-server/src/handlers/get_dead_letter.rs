//! `GET /api/v1/dead-letters/{run}`.

use axum::Json;
use axum::extract::State;
use cofferdam_api::{DeadLetterResponse, ErrorCode, RunIdText};
use cofferdam_core::RunId;
use cofferdam_store::KeptLetter;

use crate::access::{May, Read};
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::Path;
use crate::wire;

/// What is kept of a run that failed for good.
#[utoipa::path(get, path = "/api/v1/dead-letters/{run}", tag = "dead letters", params(("run" = inline(RunIdText), Path)), responses(
    (status = 200, description = "The letter.", body = DeadLetterResponse),
    (status = 404, description = "The run is no dead letter.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_dead_letter(
    _may: May<Read>,
    State(app): State<App>,
    Path(run): Path<RunId>,
) -> Result<Json<DeadLetterResponse>, ApiError> {
    Ok(Json(wire::letter(find(&app, &run).await?)))
}

/// The dead letter of a run.
pub(super) async fn find(app: &App, run: &RunId) -> Result<KeptLetter, ApiError> {
    let found = app.store().letter(run).await?;
    found.ok_or_else(|| ApiError::new(ErrorCode::DeadLetterNotFound, format!("{run} is no dead letter")))
}
