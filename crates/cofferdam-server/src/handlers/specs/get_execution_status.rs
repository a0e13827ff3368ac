//! `GET /api/v1/specs/{id}/execution-status`.

use axum::Json;
use cofferdam_api::{ExecutionStatus, SpecIdText};
use cofferdam_core::SpecId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Path;
use crate::wire_spec;

/// How a spec stands, and how far it is.
#[utoipa::path(get, path = "/api/v1/specs/{id}/execution-status", tag = "specs", params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "How it stands.", body = ExecutionStatus),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_execution_status(
    By(actor, app): By,
    Path(id): Path<SpecId>,
) -> Answer<ExecutionStatus> {
    let spec = app.operations().read_spec(&actor, &id).await?;
    let last_run = app.operations().last_run_of(&spec).await?;
    Ok(Json(wire_spec::execution_status(&spec, last_run)))
}
