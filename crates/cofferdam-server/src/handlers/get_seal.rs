//! `GET /api/v1/runs/{id}/seal`.

use axum::Json;
use axum::extract::State;
use cofferdam_api::{RunIdText, SealResponse};
use cofferdam_core::RunId;

use crate::access::By;
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::Path;
use crate::wire;

/// What was measured to be in force around each attempt.
#[utoipa::path(get, path = "/api/v1/runs/{id}/seal", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "The attempts with their seals.", body = SealResponse),
    (status = 404, description = "There is no such run, or no attempt has begun.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_seal(
    By(actor): By,
    State(app): State<App>,
    Path(id): Path<RunId>,
) -> Result<Json<SealResponse>, ApiError> {
    let (record, attempts) = app.operations().read_seals(&actor, &id).await?;
    let attempts = attempts.into_iter().map(|attempt| wire::attempt(&id, attempt)).collect();
    Ok(Json(SealResponse { run_id: id, mode: record.request.policy.mode.to_string(), attempts }))
}
