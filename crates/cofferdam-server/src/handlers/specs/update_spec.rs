//! `PATCH /api/v1/specs/{id}`.

use axum::Json;
use cofferdam_api::{SpecIdText, SpecResponse, UpdateSpecRequest};
use cofferdam_core::SpecId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::{self, Path};

/// Changes a spec's texts or its project, or puts it away. What was there stays as a version.
#[utoipa::path(patch, path = "/api/v1/specs/{id}", tag = "specs", request_body = UpdateSpecRequest, params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "The spec, as it is now.", body = SpecResponse),
    (status = 404, description = "There is no such spec or project.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "A run works on it.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn update_spec(
    By(actor, app): By,
    Path(id): Path<SpecId>,
    extract::Json(body): extract::Json<UpdateSpecRequest>,
) -> Answer<SpecResponse> {
    Ok(Json(SpecResponse::from(app.operations().update_spec(&actor, &id, &body).await?)))
}
