//! `DELETE /api/v1/specs/{id}`.

use cofferdam_api::{SpecIdText, UpdateSpecRequest};
use cofferdam_core::SpecId;
use http::StatusCode;

use crate::access::By;
use crate::errors::ApiError;
use crate::extract::{NoBody, Path};

/// Puts a spec away. It stays on record; `PATCH` with `"archived": false` takes it out again.
#[utoipa::path(delete, path = "/api/v1/specs/{id}", tag = "specs", params(("id" = inline(SpecIdText), Path)), responses(
    (status = 204, description = "It was put away."),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "A run works on it.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn archive_spec(
    By(actor, app): By,
    Path(id): Path<SpecId>,
    _body: NoBody,
) -> Result<StatusCode, ApiError> {
    let edit = UpdateSpecRequest { archived: Some(true), ..UpdateSpecRequest::default() };
    app.operations().update_spec(&actor, &id, &edit).await?;
    Ok(StatusCode::NO_CONTENT)
}
