//! `POST /api/v1/specs/{id}/reject`.

use cofferdam_api::{DecideSpecRequest, DecideSpecResponse, SpecIdText};
use cofferdam_core::SpecId;
use cofferdam_operations::Decision;

use super::approve_spec::decide;
use crate::access::By;
use crate::errors::Answer;
use crate::extract::{self, Path};

/// Rejects what the waiting phase brought: a run tries the phase again, which is told the reason.
#[utoipa::path(post, path = "/api/v1/specs/{id}/reject", tag = "specs", request_body = DecideSpecRequest,
    params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "It was decided.", body = DecideSpecResponse),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "No phase waits, or not this one.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn reject_spec(
    By(actor, app): By,
    Path(id): Path<SpecId>,
    extract::Json(body): extract::Json<DecideSpecRequest>,
) -> Answer<DecideSpecResponse> {
    decide(&app, &actor, &id, Decision::Reject, &body).await
}
