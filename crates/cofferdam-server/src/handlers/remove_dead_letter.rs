//! `DELETE /api/v1/dead-letters/{run}`.

use cofferdam_api::RunIdText;
use cofferdam_core::RunId;
use http::StatusCode;

use crate::access::By;
use crate::errors::ApiError;
use crate::extract::Path;

/// Forgets a dead letter, and not its run. The copies of it in the nodes' folders go with their next sweep.
#[utoipa::path(delete, path = "/api/v1/dead-letters/{run}", tag = "dead letters", params(("run" = inline(RunIdText), Path)), responses(
    (status = 204, description = "It is forgotten."),
    (status = 404, description = "The run is no dead letter.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn remove_dead_letter(
    By(actor, app): By,
    Path(run): Path<RunId>,
) -> Result<StatusCode, ApiError> {
    app.operations().remove_dead_letter(&actor, &run).await?;
    Ok(StatusCode::NO_CONTENT)
}
