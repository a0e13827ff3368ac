//! `GET /api/v1/specs/{id}/phase-data`.

use axum::Json;
use cofferdam_api::{PhaseData, SpecIdText};
use cofferdam_core::SpecId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Path;

/// What the phases of a spec brought.
#[utoipa::path(get, path = "/api/v1/specs/{id}/phase-data", tag = "specs", params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "By the name of the phase.", body = PhaseData),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_phase_data(By(actor, app): By, Path(id): Path<SpecId>) -> Answer<PhaseData> {
    Ok(Json(PhaseData::from(app.operations().read_spec(&actor, &id).await?)))
}
