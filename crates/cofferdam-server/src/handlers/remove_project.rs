//! `DELETE /api/v1/projects/{project}`.

use cofferdam_api::ProjectRefText;
use http::StatusCode;

use crate::access::By;
use crate::errors::ApiError;
use crate::extract::Path;

/// Forgets a project, and not its runs.
#[utoipa::path(delete, path = "/api/v1/projects/{project}", tag = "projects", params(("project" = inline(ProjectRefText), Path)), responses(
    (status = 204, description = "It is forgotten."),
    (status = 404, description = "There is no such project.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn remove_project(
    By(actor, app): By,
    Path(project): Path<String>,
) -> Result<StatusCode, ApiError> {
    app.operations().remove_project(&actor, &project).await?;
    Ok(StatusCode::NO_CONTENT)
}
