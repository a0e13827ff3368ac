//! `DELETE /api/v1/runs/{id}`.

use cofferdam_api::{ErrorCode, RunIdText};
use cofferdam_core::{RunId, with_causes};
use http::StatusCode;

use crate::access::By;
use crate::errors::ApiError;
use crate::extract::Path;

/// Removes a run that has ended: its record, then its files in the bucket and on the service's machine. Files in the state
/// folder of another machine stay there, and the copy of its dead letter goes with the nodes' next sweep.
#[utoipa::path(delete, path = "/api/v1/runs/{id}", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 204, description = "It is removed."),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "The run has not ended.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn remove_run(By(actor, app): By, Path(id): Path<RunId>) -> Result<StatusCode, ApiError> {
    let left = app.operations().remove_run(&actor, &id).await?;
    app.artifacts().remove(&id, &left).await.map_err(|error| {
        tracing::error!(run.id = %id, error = %with_causes(&error), "files of a removed run are still there");
        let message = "the run is removed, and some of its files could not be; the service's log has more";
        ApiError::new(ErrorCode::InternalError, message)
    })?;
    Ok(StatusCode::NO_CONTENT)
}
