//! `GET /api/v1/runs/{id}/artifacts`.

use axum::Json;
use cofferdam_api::{ArtifactList, RunIdText};
use cofferdam_core::RunId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Path;
use crate::wire;

/// The files that the run's attempts have left.
#[utoipa::path(get, path = "/api/v1/runs/{id}/artifacts", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "The files.", body = ArtifactList),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn list_artifacts(By(actor, app): By, Path(id): Path<RunId>) -> Answer<ArtifactList> {
    let artifacts = app.operations().read_artifacts(&actor, &id).await?;
    let artifacts = artifacts.into_iter().map(|artifact| wire::artifact(&id, artifact)).collect();
    Ok(Json(ArtifactList { artifacts }))
}
