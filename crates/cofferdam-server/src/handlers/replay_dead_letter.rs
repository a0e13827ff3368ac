//! `POST /api/v1/dead-letters/{run}/replay`.

use axum::response::IntoResponse;
use cofferdam_api::{RunIdText, RunResponse};
use cofferdam_core::RunId;

use super::create_run;
use crate::access::By;
use crate::errors::ApiError;
use crate::extract::{NoBody, Path};

/// The same request again, as a new run. The letter stays.
#[utoipa::path(post, path = "/api/v1/dead-letters/{run}/replay", tag = "dead letters", params(("run" = inline(RunIdText), Path)), responses(
    (status = 202, description = "The new run.", body = RunResponse, headers(("Location" = String, description = "Where it is."))),
    (status = 404, description = "The run is no dead letter.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn replay_dead_letter(
    By(actor, app): By,
    Path(run): Path<RunId>,
    _body: NoBody,
) -> Result<impl IntoResponse, ApiError> {
    let new = app.operations().replay_dead_letter(&actor, &run).await?;
    create_run::accepted(&app, &actor, &new).await
}
