//! `GET /api/v1/projects/{project}`.

use axum::Json;
use cofferdam_api::{ProjectRefText, ProjectResponse};

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Path;

/// A registered repository, by its id or its name.
#[utoipa::path(get, path = "/api/v1/projects/{project}", tag = "projects", params(("project" = inline(ProjectRefText), Path)), responses(
    (status = 200, description = "The project.", body = ProjectResponse),
    (status = 404, description = "There is no such project.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_project(By(actor, app): By, Path(project): Path<String>) -> Answer<ProjectResponse> {
    Ok(Json(ProjectResponse::from(app.operations().read_project(&actor, &project).await?)))
}
