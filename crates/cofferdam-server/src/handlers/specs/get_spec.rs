//! `GET /api/v1/specs/{id}`.

use axum::Json;
use cofferdam_api::{SpecIdText, SpecResponse};
use cofferdam_core::SpecId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Path;

/// A spec. What its phases brought is in `phase-data`.
#[utoipa::path(get, path = "/api/v1/specs/{id}", tag = "specs", params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "The spec.", body = SpecResponse),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_spec(By(actor, app): By, Path(id): Path<SpecId>) -> Answer<SpecResponse> {
    Ok(Json(SpecResponse::from(app.operations().read_spec(&actor, &id).await?)))
}
