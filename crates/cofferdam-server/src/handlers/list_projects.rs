//! `GET /api/v1/projects`.

use axum::Json;
use axum::extract::State;
use cofferdam_api::ProjectList;

use crate::access::By;
use crate::app::App;
use crate::errors::ApiError;
use crate::wire;

/// The registered repositories, by name.
#[utoipa::path(get, path = "/api/v1/projects", tag = "projects", responses(
    (status = 200, description = "The projects.", body = ProjectList),
))]
pub(crate) async fn list_projects(
    By(actor): By,
    State(app): State<App>,
) -> Result<Json<ProjectList>, ApiError> {
    let projects = app.operations().list_projects(&actor).await?.into_iter().map(wire::project).collect();
    Ok(Json(ProjectList { projects }))
}
