//! `GET /api/v1/projects/{project}`.

use axum::Json;
use axum::extract::State;
use cofferdam_api::{ErrorCode, ProjectRefText, ProjectResponse};
use cofferdam_core::Project;

use crate::access::{May, Read};
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::Path;
use crate::wire;

/// A registered repository, by its id or its name.
#[utoipa::path(get, path = "/api/v1/projects/{project}", tag = "projects", params(("project" = inline(ProjectRefText), Path)), responses(
    (status = 200, description = "The project.", body = ProjectResponse),
    (status = 404, description = "There is no such project.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_project(
    _may: May<Read>,
    State(app): State<App>,
    Path(project): Path<String>,
) -> Result<Json<ProjectResponse>, ApiError> {
    Ok(Json(wire::project(find(&app, &project).await?)))
}

/// The project of this id or name.
pub(super) async fn find(app: &App, project: &str) -> Result<Project, ApiError> {
    let found = app.store().find_project(project).await?;
    found.ok_or_else(|| ApiError::new(ErrorCode::ProjectNotFound, "there is no project of this id or name"))
}
