//! `GET /api/v1/runs/{id}/logs`.

use axum::response::{IntoResponse, Response};
use cofferdam_api::{ErrorCode, RunIdText};
use cofferdam_core::RunId;
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

use super::{file, said};
use crate::access::By;
use crate::errors::ApiError;
use crate::extract::Path;

/// The name under which attempts leave all that their agent printed.
const TRANSCRIPT: &str = "transcript";
/// What is told of a run that has left none yet.
const MOST: usize = 4 << 20;

/// What the agent printed: all of it once the attempt has ended, and before that what is known.
#[utoipa::path(get, path = "/api/v1/runs/{id}/logs", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "As it was printed.", body = Vec<u8>, content_type = "text/plain"),
    (status = 404, description = "There is no such run, or what its agent printed was removed.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_logs(By(actor, app): By, Path(id): Path<RunId>) -> Result<Response, ApiError> {
    let kind = "text/plain; charset=utf-8";
    match file::find(&app, &actor, &id, None, TRANSCRIPT).await {
        Ok(transcript) => file::send(&app, &transcript, kind).await,
        Err(error) if error.code() == ErrorCode::ArtifactNotFound => {
            if let Some(at_ms) = app.operations().read_run(&actor, &id).await?.events_removed_at_ms {
                return Err(file::removed("what the agent printed was", at_ms));
            }
            let text = said::said(&app, &id, true, MOST).await?;
            Ok(([(CONTENT_TYPE, kind), (X_CONTENT_TYPE_OPTIONS, "nosniff")], text).into_response())
        }
        Err(error) => Err(error),
    }
}
