//! `DELETE /api/v1/projects/{project}`.

use axum::extract::State;
use cofferdam_api::ProjectRefText;
use http::StatusCode;
use serde_json::json;

use super::get_project::find;
use crate::access::{May, Run};
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::Path;

/// Forgets a project, and not its runs.
#[utoipa::path(delete, path = "/api/v1/projects/{project}", tag = "projects", params(("project" = inline(ProjectRefText), Path)), responses(
    (status = 204, description = "It is forgotten."),
    (status = 404, description = "There is no such project.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn remove_project(
    may: May<Run>,
    State(app): State<App>,
    Path(project): Path<String>,
) -> Result<StatusCode, ApiError> {
    let project = find(&app, &project).await?;
    app.audit(may.caller(), "project.remove", project.id.as_str(), json!({ "name": project.name })).await?;
    app.store().remove_project(&project.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
