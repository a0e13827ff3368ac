//! `GET /api/v1/specs/{id}/export`.

use axum::response::{IntoResponse, Response};
use cofferdam_api::SpecIdText;
use cofferdam_core::SpecId;
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

use crate::access::By;
use crate::errors::ApiError;
use crate::extract::Path;

/// A spec as a page of Markdown: what was wanted, and what each phase that has passed brought.
#[utoipa::path(get, path = "/api/v1/specs/{id}/export", tag = "specs", params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "The page.", body = String, content_type = "text/markdown"),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn export_spec(By(actor, app): By, Path(id): Path<SpecId>) -> Result<Response, ApiError> {
    let page = app.operations().export_spec(&actor, &id).await?;
    let kind = "text/markdown; charset=utf-8";
    Ok(([(CONTENT_TYPE, kind), (X_CONTENT_TYPE_OPTIONS, "nosniff")], page).into_response())
}
