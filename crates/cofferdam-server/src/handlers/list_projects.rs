//! `GET /api/v1/projects`.

use axum::Json;
use cofferdam_api::{ProjectList, ProjectResponse};

use crate::access::By;
use crate::errors::Answer;

/// The registered repositories, by name.
#[utoipa::path(get, path = "/api/v1/projects", tag = "projects", responses(
    (status = 200, description = "The projects.", body = ProjectList),
))]
pub(crate) async fn list_projects(By(actor, app): By) -> Answer<ProjectList> {
    let projects =
        app.operations().list_projects(&actor).await?.into_iter().map(ProjectResponse::from).collect();
    Ok(Json(ProjectList { projects }))
}
