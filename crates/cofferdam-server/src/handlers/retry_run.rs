//! `POST /api/v1/runs/{id}/retry`.

use axum::response::IntoResponse;
use cofferdam_api::{RunIdText, RunResponse};
use cofferdam_core::RunId;

use super::create_run;
use crate::access::By;
use crate::errors::ApiError;
use crate::extract::{NoBody, Path};

/// The same request again, as a new run. The run that has ended stays as it is.
#[utoipa::path(post, path = "/api/v1/runs/{id}/retry", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 202, description = "The new run.", body = RunResponse, headers(("Location" = String, description = "Where it is."))),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "It has not ended.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn retry_run(
    By(actor, app): By,
    Path(id): Path<RunId>,
    _body: NoBody,
) -> Result<impl IntoResponse, ApiError> {
    let run = app.operations().retry_run(&actor, &id).await?;
    create_run::accepted(&app, &actor, &run).await
}
