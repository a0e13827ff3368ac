//! `PUT /api/v1/specs/{id}/phases/{phase}`.

use axum::Json;
use cofferdam_api::{PhaseText, SpecIdText, WritePhaseRequest, WritePhaseResponse};
use cofferdam_core::SpecId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::{self, Path};

/// Writes what a phase is to have brought: how requirements, a design and tasks are edited. The gate of the phase judges it,
/// and the phases after it are open again. What was there stays as a version.
#[utoipa::path(put, path = "/api/v1/specs/{id}/phases/{phase}", tag = "specs", request_body = WritePhaseRequest,
    params(("id" = inline(SpecIdText), Path), ("phase" = inline(PhaseText), Path)), responses(
    (status = 200, description = "It was written, and this is what the gate says.", body = WritePhaseResponse),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "A run works on it.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn write_phase(
    By(actor, app): By,
    Path((id, phase)): Path<(SpecId, String)>,
    extract::Json(body): extract::Json<WritePhaseRequest>,
) -> Answer<WritePhaseResponse> {
    let written = app.operations().write_spec_phase(&actor, &id, &phase, &body).await?;
    let (phase, version, gate) = (written.phase, written.spec.version, written.gate);
    Ok(Json(WritePhaseResponse { spec_id: id, phase, version, gate }))
}
