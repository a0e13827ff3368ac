//! `GET /api/v1/runs/{id}/artifacts/{attempt}/{name}`.

use axum::response::Response;
use cofferdam_api::RunIdText;
use cofferdam_core::RunId;

use super::file;
use crate::access::By;
use crate::errors::ApiError;
use crate::extract::Path;

/// A file that an attempt has left.
#[utoipa::path(get, path = "/api/v1/runs/{id}/artifacts/{attempt}/{name}", tag = "runs",
    params(("id" = inline(RunIdText), Path), ("attempt" = u32, Path, minimum = 1, maximum = 1_000_000),
        ("name" = String, Path, pattern = "^[0-9A-Za-z][0-9A-Za-z._-]{0,99}$")),
    responses(
    (status = 200, description = "The file, byte for byte.", body = Vec<u8>, content_type = "application/octet-stream"),
    (status = 404, description = "There is no such run or file.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_artifact(
    By(actor, app): By,
    Path((id, attempt, name)): Path<(RunId, u32, String)>,
) -> Result<Response, ApiError> {
    let artifact = file::find(&app, &actor, &id, Some(attempt), &name).await?;
    file::send(&app, &artifact, "application/octet-stream").await
}
