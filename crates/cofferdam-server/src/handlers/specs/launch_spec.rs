//! `POST /api/v1/specs/launch`.

use axum::Json;
use axum::response::IntoResponse;
use cofferdam_api::{LaunchSpecRequest, LaunchSpecResponse, LaunchSpecStatus};
use http::StatusCode;
use http::header::LOCATION;

use super::sandbox::sandbox_of;
use crate::access::By;
use crate::errors::ApiError;
use crate::extract;
use crate::surroundings::ServiceSurroundings;

/// Makes a spec and executes it. Where it cannot be executed, it is not made.
#[utoipa::path(post, path = "/api/v1/specs/launch", tag = "specs", request_body = LaunchSpecRequest, responses(
    (status = 201, description = "The spec, and its run.", body = LaunchSpecResponse, headers(("Location" = String, description = "Where it is."))),
    (status = 404, description = "There is no such project or agent.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "Options conflict.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn launch_spec(
    By(actor, app): By,
    extract::Json(body): extract::Json<LaunchSpecRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let surroundings = ServiceSurroundings::of(&app);
    let launched = app.operations().launch_spec(&actor, &body, &app.options().place, &surroundings).await?;
    let sandbox_id = match &launched.run {
        Some(run) => Some(sandbox_of(&app, &launched.spec, run).await?),
        None => None,
    };
    let (status, message) = match launched.run {
        Some(_) => (LaunchSpecStatus::Executing, "the spec was made, and a run works on it"),
        None => (LaunchSpecStatus::Created, "the spec was made; execute it when you want"),
    };
    let location = [(LOCATION, format!("/api/v1/specs/{}", launched.spec.id))];
    let answer = LaunchSpecResponse {
        status,
        message: message.to_owned(),
        current_phase: launched.spec.current_phase(),
        sandbox_id,
        run_id: launched.run,
        warnings: launched.warnings,
        spec_id: launched.spec.id,
    };
    Ok((StatusCode::CREATED, location, Json(answer)))
}
