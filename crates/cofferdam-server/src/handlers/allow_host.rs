//! `POST /api/v1/runs/{id}/allow`.

use axum::Json;
use cofferdam_api::{AllowRequest, AllowResponse, RunIdText};
use cofferdam_core::RunId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::{self, Path};

/// Lets a live, sealed run reach more: hosts, or sets of the service's settings.
#[utoipa::path(post, path = "/api/v1/runs/{id}/allow", tag = "runs", request_body = AllowRequest,
    params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "What was added.", body = AllowResponse),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "The run has ended, or its network is not `sealed`.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn allow_host(
    By(actor, app): By,
    Path(id): Path<RunId>,
    extract::Json(body): extract::Json<AllowRequest>,
) -> Answer<AllowResponse> {
    let added = app.operations().allow_host(&actor, &id, &body.allow).await?;
    Ok(Json(AllowResponse { id, added }))
}
