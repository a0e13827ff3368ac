//! `GET /api/v1/runs/{id}/artifacts`.

use axum::Json;
use axum::extract::State;
use cofferdam_api::{ArtifactList, RunIdText};
use cofferdam_core::RunId;

use crate::access::By;
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::Path;
use crate::wire;

/// The files that the run's attempts have left.
#[utoipa::path(get, path = "/api/v1/runs/{id}/artifacts", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "The files.", body = ArtifactList),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn list_artifacts(
    By(actor): By,
    State(app): State<App>,
    Path(id): Path<RunId>,
) -> Result<Json<ArtifactList>, ApiError> {
    let artifacts = app.operations().read_artifacts(&actor, &id).await?;
    let artifacts = artifacts.into_iter().map(|artifact| wire::artifact(&id, artifact)).collect();
    Ok(Json(ArtifactList { artifacts }))
}
