//! `POST /api/v1/specs`.

use axum::Json;
use axum::response::IntoResponse;
use cofferdam_api::{CreateSpecRequest, SpecResponse};
use http::StatusCode;
use http::header::LOCATION;

use crate::access::By;
use crate::errors::ApiError;
use crate::extract;

/// Makes a spec: what is wanted of a project. Nothing of it is done before it is executed.
#[utoipa::path(post, path = "/api/v1/specs", tag = "specs", request_body = CreateSpecRequest, responses(
    (status = 201, description = "The spec.", body = SpecResponse, headers(("Location" = String, description = "Where it is."))),
    (status = 404, description = "There is no such project.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn create_spec(
    By(actor, app): By,
    extract::Json(body): extract::Json<CreateSpecRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let spec = app.operations().create_spec(&actor, &body).await?;
    let location = [(LOCATION, format!("/api/v1/specs/{}", spec.id))];
    Ok((StatusCode::CREATED, location, Json(SpecResponse::from(spec))))
}
