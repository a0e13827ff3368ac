//! `POST /api/v1/projects`.

use axum::Json;
use axum::response::IntoResponse;
use cofferdam_api::{CreateProjectRequest, ProjectResponse};
use http::StatusCode;
use http::header::LOCATION;

use super::create_run;
use crate::access::By;
use crate::errors::ApiError;
use crate::extract;
use crate::surroundings::ServiceSurroundings;

/// Registers a repository that this key may run on. Whoever may run anything may then run on it.
#[utoipa::path(post, path = "/api/v1/projects", tag = "projects", request_body = CreateProjectRequest, responses(
    (status = 201, description = "The project.", body = ProjectResponse, headers(("Location" = String, description = "Where it is."))),
    (status = 404, description = "There is no such path.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "There is a project of this name.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn create_project(
    By(actor, app): By,
    extract::Json(body): extract::Json<CreateProjectRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let names_paths = body.repo.starts_with('/');
    let project = create_run::looking_at_paths(names_paths, async move {
        let surroundings = ServiceSurroundings::of(&app);
        Ok(app.operations().create_project(&actor, &body, &surroundings).await?)
    })
    .await?;
    let location = [(LOCATION, format!("/api/v1/projects/{}", project.id))];
    Ok((StatusCode::CREATED, location, Json(ProjectResponse::from(project))))
}
