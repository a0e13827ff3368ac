//! `GET /api/v1/runs/{id}/seal`.

use axum::Json;
use cofferdam_api::{RunIdText, SealResponse};
use cofferdam_core::RunId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Path;
use crate::wire;

/// What was measured to be in force around each attempt.
#[utoipa::path(get, path = "/api/v1/runs/{id}/seal", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "The attempts with their seals.", body = SealResponse),
    (status = 404, description = "There is no such run, or no attempt has begun.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_seal(By(actor, app): By, Path(id): Path<RunId>) -> Answer<SealResponse> {
    let (record, attempts) = app.operations().read_seals(&actor, &id).await?;
    let attempts = attempts.into_iter().map(|attempt| wire::attempt(&id, attempt)).collect();
    Ok(Json(SealResponse { run_id: id, mode: record.request.shown_mode(), attempts }))
}
