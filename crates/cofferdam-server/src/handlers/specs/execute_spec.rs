//! `POST /api/v1/specs/{id}/execute`.

use axum::Json;
use cofferdam_api::{ExecuteSpecRequest, ExecuteSpecResponse, ExecuteSpecStatus, SpecIdText};
use cofferdam_core::SpecId;
use cofferdam_operations::NewExecution;

use super::sandbox::sandbox_of;
use crate::access::By;
use crate::errors::Answer;
use crate::extract::{OptionalJson, Path};
use crate::surroundings::ServiceSurroundings;

/// Starts a run on the phases that are next, in a sandbox. It answers at once; of many calls at the same time one starts it,
/// and the others are told `already_running`.
#[utoipa::path(post, path = "/api/v1/specs/{id}/execute", tag = "specs", request_body = Option<ExecuteSpecRequest>,
    params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "A run works on it.", body = ExecuteSpecResponse),
    (status = 404, description = "There is no such spec, project or agent.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "Somebody has to approve first, all phases have passed, or options conflict.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn execute_spec(
    By(actor, app): By,
    Path(id): Path<SpecId>,
    OptionalJson(body): OptionalJson<ExecuteSpecRequest>,
) -> Answer<ExecuteSpecResponse> {
    let surroundings = ServiceSurroundings::of(&app);
    let new = NewExecution { input: &body, place: &app.options().place, surroundings: &surroundings };
    let executed = app.operations().execute_spec(&actor, &id, &new).await?;
    let (status, message) = match executed.is_new {
        true => (ExecuteSpecStatus::Started, "a run was started"),
        false => (ExecuteSpecStatus::AlreadyRunning, "a run works on it already"),
    };
    Ok(Json(ExecuteSpecResponse {
        spec_id: id,
        status,
        message: message.to_owned(),
        sandbox_id: sandbox_of(&app, &executed.spec, &executed.run).await?,
        current_phase: executed.spec.current_phase(),
        run_id: executed.run,
        warnings: executed.warnings,
    }))
}
