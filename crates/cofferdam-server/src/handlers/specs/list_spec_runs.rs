//! `GET /api/v1/specs/{id}/runs`.

use axum::Json;
use cofferdam_api::{SpecIdText, SpecRunList, SpecRunResponse};
use cofferdam_core::SpecId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Path;

/// The runs that worked on a spec.
#[utoipa::path(get, path = "/api/v1/specs/{id}/runs", tag = "specs", params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "The newest first.", body = SpecRunList),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn list_spec_runs(By(actor, app): By, Path(id): Path<SpecId>) -> Answer<SpecRunList> {
    let runs = app.operations().read_spec_runs(&actor, &id).await?;
    let runs = runs.into_iter().map(|worked| SpecRunResponse { run_id: worked.run, state: worked.state });
    Ok(Json(SpecRunList { runs: runs.collect() }))
}
