//! `POST /api/v1/runs/{id}/cancel`.

use axum::Json;
use axum::extract::State;
use cofferdam_api::{CancelResponse, RunIdText};
use cofferdam_core::{RunId, RunState};
use cofferdam_store::CancelAnswer;
use http::StatusCode;
use serde_json::json;

use crate::access::{Caller, May, Run};
use crate::app::{App, now_ms};
use crate::errors::ApiError;
use crate::extract::{NoBody, Path};

/// Asks for a run's end. A queued run ends at once, a running one when its node has heard of it.
#[utoipa::path(post, path = "/api/v1/runs/{id}/cancel", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "It had ended before, or has now.", body = CancelResponse),
    (status = 202, description = "Its node was asked to end it.", body = CancelResponse),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn cancel_run(
    may: May<Run>,
    State(app): State<App>,
    Path(id): Path<RunId>,
    _body: NoBody,
) -> Result<(StatusCode, Json<CancelResponse>), ApiError> {
    let answer = cancel(&app, may.caller(), &id).await?;
    let status = match answer.state.is_final() {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    };
    Ok((status, Json(answer)))
}

/// Asks for a run's end on somebody's behalf.
pub(super) async fn cancel(app: &App, caller: &Caller, id: &RunId) -> Result<CancelResponse, ApiError> {
    // A run that is not there is not worth a record.
    app.store().run(id).await?;
    app.audit(caller, "run.cancel", id.as_str(), json!({})).await?;
    let answer = app.store().request_cancel(id, now_ms()).await?;
    app.store().wake();
    let (state, requested) = match answer {
        CancelAnswer::Cancelled => (RunState::Cancelled, true),
        CancelAnswer::Requested => (RunState::Running, true),
        CancelAnswer::AlreadyFinal(state) => (state, false),
    };
    Ok(CancelResponse { id: id.clone(), state, requested })
}
