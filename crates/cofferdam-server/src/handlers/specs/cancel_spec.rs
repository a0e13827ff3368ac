//! `POST /api/v1/specs/{id}/cancel`.

use axum::Json;
use cofferdam_api::{CancelSpecResponse, SpecIdText};
use cofferdam_core::SpecId;
use http::StatusCode;

use crate::access::By;
use crate::errors::ApiError;
use crate::extract::{NoBody, Path};

/// Asks for the end of the run that works on a spec. What its phases brought stays.
#[utoipa::path(post, path = "/api/v1/specs/{id}/cancel", tag = "specs", params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "No run works on it, or not any more.", body = CancelSpecResponse),
    (status = 202, description = "The run's node was asked to end it.", body = CancelSpecResponse),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn cancel_spec(
    By(actor, app): By,
    Path(id): Path<SpecId>,
    _body: NoBody,
) -> Result<(StatusCode, Json<CancelSpecResponse>), ApiError> {
    let cancelled = app.operations().cancel_spec(&actor, &id).await?;
    let status = match cancelled.is_under_way {
        true => StatusCode::ACCEPTED,
        false => StatusCode::OK,
    };
    let requested = cancelled.run.is_some();
    let answer =
        CancelSpecResponse { spec_id: id, status: cancelled.status, run_id: cancelled.run, requested };
    Ok((status, Json(answer)))
}
