//! `POST /api/v1/runs/{id}/cancel`.

use axum::Json;
use cofferdam_api::{CancelResponse, RunIdText};
use cofferdam_core::RunId;
use http::StatusCode;

use crate::access::By;
use crate::errors::ApiError;
use crate::extract::{NoBody, Path};

/// Asks for a run's end. A queued run ends at once, a running one when its node has heard of it.
#[utoipa::path(post, path = "/api/v1/runs/{id}/cancel", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "It had ended before, or has now.", body = CancelResponse),
    (status = 202, description = "Its node was asked to end it.", body = CancelResponse),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn cancel_run(
    By(actor, app): By,
    Path(id): Path<RunId>,
    _body: NoBody,
) -> Result<(StatusCode, Json<CancelResponse>), ApiError> {
    let cancelled = app.operations().cancel_run(&actor, &id).await?;
    let status = match cancelled.state.is_final() {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    };
    Ok((status, Json(CancelResponse { id, state: cancelled.state, requested: cancelled.requested })))
}
