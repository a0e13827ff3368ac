//! `POST /api/v1/runs`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cofferdam_api::{CreateRunRequest, DryRunResponse, RunResponse};
use cofferdam_core::RunId;
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::access::{Caller, May, Run};
use crate::admission::admit;
use crate::app::{App, new_run_id, now_ms};
use crate::errors::ApiError;
use crate::extract;
use crate::wire;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const LONGEST_KEY: usize = 200;

/// Accepts a task. It is durable when this is answered; a node takes it as soon as one can.
#[utoipa::path(post, path = "/api/v1/runs", tag = "runs", request_body = CreateRunRequest,
    params(("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,200}$",
        description = "A request that is repeated with the same key returns the first run.")),
    responses(
    (status = 200, description = "What would be run, if `dry_run` is set. Nothing was started.", body = DryRunResponse),
    (status = 202, description = "The run.", body = RunResponse, headers(("Location" = String, description = "Where it is."))),
    (status = 404, description = "There is no such project, agent, policy or path.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "The key was used for another request, or options conflict.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn create_run(
    may: May<Run>,
    State(app): State<App>,
    headers: HeaderMap,
    extract::Json(body): extract::Json<CreateRunRequest>,
) -> Result<Response, ApiError> {
    if body.dry_run == Some(true) {
        return Ok(Json(judge(&app, may.caller(), &body).await?).into_response());
    }
    let run = accept(&app, may.caller(), &headers, &body).await?;
    Ok(accepted(&app, &run).await?.into_response())
}

/// Only judges a task: nothing is written down.
pub(crate) async fn judge(
    app: &App,
    caller: &Caller,
    body: &CreateRunRequest,
) -> Result<DryRunResponse, ApiError> {
    Ok(DryRunResponse { dry_run: true, request: admit(app, caller, new_run_id(), body).await? })
}

/// Accepts a task for anybody who may ask for it. `POST /execute` takes the same way.
pub(crate) async fn accept(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    body: &CreateRunRequest,
) -> Result<RunId, ApiError> {
    let key = idempotency_key(caller, headers)?;
    let request = admit(app, caller, new_run_id(), body).await?;
    let about = json!({ "mode": request.policy.mode, "network": request.policy.network, "agent": request.agent.provider() });
    app.audit(caller, "run.create", request.id.as_str(), about).await?;
    let enqueued = app.store().enqueue(&request, key.as_deref(), now_ms()).await?;
    app.store().wake();
    Ok(enqueued.run)
}

/// The answer to a task that is on record.
pub(crate) async fn accepted(app: &App, run: &RunId) -> Result<impl IntoResponse + use<>, ApiError> {
    let record = app.store().run(run).await?;
    let location = [(LOCATION, format!("/api/v1/runs/{run}"))];
    Ok((StatusCode::ACCEPTED, location, Json(wire::run(record))))
}

/// A key is its caller's own: the same word of two callers is two keys.
fn idempotency_key(caller: &Caller, headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let plain = |text: &&str| {
        !text.is_empty() && text.len() <= LONGEST_KEY && text.bytes().all(|b| b.is_ascii_graphic())
    };
    match value.to_str().ok().filter(plain) {
        Some(text) => Ok(Some(format!("{}:{text}", caller.actor()))),
        None => Err(ApiError::invalid_field(
            "Idempotency-Key",
            "it is not a plain word",
            "write 1 to 200 letters, digits or signs, without spaces",
        )),
    }
}
