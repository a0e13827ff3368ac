//! `POST /api/v1/specs/{id}/approve`.

use axum::Json;
use cofferdam_api::{DecideSpecRequest, DecideSpecResponse, SpecIdText};
use cofferdam_core::{Actor, SpecId};
use cofferdam_operations::Decision;

use super::sandbox::sandbox_of;
use crate::access::By;
use crate::app::App;
use crate::errors::Answer;
use crate::extract::{OptionalJson, Path};

/// Approves what the waiting phase brought: a run goes on with the next phases, by the same policy.
#[utoipa::path(post, path = "/api/v1/specs/{id}/approve", tag = "specs", request_body = Option<DecideSpecRequest>,
    params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "It was decided.", body = DecideSpecResponse),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "No phase waits, or not this one.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn approve_spec(
    By(actor, app): By,
    Path(id): Path<SpecId>,
    OptionalJson(body): OptionalJson<DecideSpecRequest>,
) -> Answer<DecideSpecResponse> {
    decide(&app, &actor, &id, Decision::Approve, &body).await
}

/// Decides about the phase that waits.
pub(super) async fn decide(
    app: &App,
    actor: &Actor,
    id: &SpecId,
    decision: Decision,
    body: &DecideSpecRequest,
) -> Answer<DecideSpecResponse> {
    let decided = app.operations().decide_spec(actor, id, decision, body).await?;
    let sandbox_id = match &decided.run {
        Some(run) => Some(sandbox_of(app, &decided.spec, run).await?),
        None => None,
    };
    Ok(Json(DecideSpecResponse {
        spec_id: id.clone(),
        status: decided.spec.status(),
        phase: decided.phase,
        run_id: decided.run,
        sandbox_id,
        current_phase: decided.spec.current_phase(),
    }))
}
