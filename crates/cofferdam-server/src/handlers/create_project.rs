//! `POST /api/v1/projects`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use cofferdam_api::{CreateProjectRequest, ErrorCode, ProjectResponse};
use cofferdam_core::{Project, ProjectId};
use http::StatusCode;
use http::header::LOCATION;
use serde_json::json;

use crate::access::{May, Run};
use crate::admission::{concurrency, find_source};
use crate::app::{App, now_ms};
use crate::errors::ApiError;
use crate::random::random_bits;
use crate::{extract, wire};

/// Registers a repository that this key may run on. Whoever may run anything may then run on it.
#[utoipa::path(post, path = "/api/v1/projects", tag = "projects", request_body = CreateProjectRequest, responses(
    (status = 201, description = "The project.", body = ProjectResponse, headers(("Location" = String, description = "Where it is."))),
    (status = 404, description = "There is no such path.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "There is a project of this name.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn create_project(
    may: May<Run>,
    State(app): State<App>,
    extract::Json(body): extract::Json<CreateProjectRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let name = body.name.parse().map_err(|error| ApiError::invalid("name", &error))?;
    let source = find_source(&app, may.caller(), &body.repo, body.reference.as_deref()).await?;
    let project = Project {
        id: ProjectId::new(now_ms(), random_bits()),
        name,
        source,
        max_concurrency: concurrency(body.max_concurrency)?,
    };
    let about = json!({ "name": project.name, "source": project.source });
    app.audit(may.caller(), "project.create", project.id.as_str(), about).await?;
    if !app.store().create_project(&project, now_ms()).await? {
        return Err(ApiError::new(
            ErrorCode::ProjectExists,
            format!("there is a project `{}`", project.name),
        ));
    }
    let location = [(LOCATION, format!("/api/v1/projects/{}", project.id))];
    Ok((StatusCode::CREATED, location, Json(wire::project(project))))
}
