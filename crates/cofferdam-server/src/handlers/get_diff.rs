//! `GET /api/v1/runs/{id}/diff`.

use axum::response::Response;
use cofferdam_api::RunIdText;
use cofferdam_core::RunId;

use super::file;
use crate::access::By;
use crate::errors::ApiError;
use crate::extract::Path;

/// The name under which attempts leave their patch.
pub(super) const DIFF: &str = "diff";

/// What the run changed, as git writes it.
#[utoipa::path(get, path = "/api/v1/runs/{id}/diff", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "The patch, byte for byte.", body = Vec<u8>, content_type = "text/x-diff"),
    (status = 404, description = "There is no such run, or it has left no patch.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_diff(By(actor, app): By, Path(id): Path<RunId>) -> Result<Response, ApiError> {
    let diff = file::find(&app, &actor, &id, None, DIFF).await?;
    file::send(&app, &diff, "text/x-diff").await
}
