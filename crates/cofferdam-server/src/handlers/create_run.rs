//! `POST /api/v1/runs`.

use axum::Json;
use axum::response::{IntoResponse, Response};
use cofferdam_api::{CreateRunRequest, DryRunResponse, ErrorCode, RunResponse};
use cofferdam_core::{Actor, InputSyntax, RunId};
use cofferdam_operations::{Judged, NewRun, Way};
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};

use crate::access::By;
use crate::app::App;
use crate::errors::ApiError;
use crate::extract;
use crate::surroundings::ServiceSurroundings;
use crate::wire;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

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
    By(actor, app): By,
    headers: HeaderMap,
    extract::Json(body): extract::Json<CreateRunRequest>,
) -> Result<Response, ApiError> {
    if body.dry_run == Some(true) {
        return Ok(Json(dry_run(&app, &actor, &body).await?).into_response());
    }
    let run = accept(&app, &actor, &headers, &body).await?;
    Ok(accepted(&app, &actor, &run).await?.into_response())
}

/// Only judges a task: no run is made.
pub(crate) async fn dry_run(
    app: &App,
    actor: &Actor,
    body: &CreateRunRequest,
) -> Result<DryRunResponse, ApiError> {
    let judged = judge(app, actor, body).await?;
    Ok(DryRunResponse { dry_run: true, request: judged.request().clone() })
}

/// Accepts a task for anybody who may ask for it. `POST /execute` takes the same way.
pub(crate) async fn accept(
    app: &App,
    actor: &Actor,
    headers: &HeaderMap,
    body: &CreateRunRequest,
) -> Result<RunId, ApiError> {
    let judged = judge(app, actor, body).await?;
    Ok(app.operations().accept(judged, idempotency_key(headers)).await?.run)
}

/// What names the request when it is repeated. What cannot be read is no plain word either.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Option<&str> {
    headers.get(IDEMPOTENCY_KEY).map(|value| value.to_str().unwrap_or_default())
}

async fn judge(app: &App, actor: &Actor, body: &CreateRunRequest) -> Result<Judged, ApiError> {
    let names_paths =
        body.repo.as_deref().is_some_and(|repo| repo.starts_with('/')) || !body.options.mounts.is_empty();
    let (app, actor, body) = (app.clone(), actor.clone(), body.clone());
    looking_at_paths(names_paths, async move {
        let new = NewRun {
            input: &body,
            syntax: InputSyntax::Fields,
            way: Way::Queued { place: &app.options().place },
            surroundings: &ServiceSurroundings::of(&app),
        };
        let (judged, _) = app.operations().judge_run(&actor, &new).await?;
        Ok(judged)
    })
    .await
}

/// Does an operation that looks at paths where it may wait for a disk, and holds nobody else up.
pub(super) async fn looking_at_paths<T: Send + 'static>(
    names_paths: bool,
    operation: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<T, ApiError> {
    if !names_paths {
        return operation.await;
    }
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(operation)).await.unwrap_or_else(|error| {
        tracing::error!(error = %error, "the task that looks at a path panicked");
        Err(ApiError::new(ErrorCode::InternalError, "the path could not be looked at"))
    })
}

/// The answer to a task that is on record.
pub(crate) async fn accepted(
    app: &App,
    actor: &Actor,
    run: &RunId,
) -> Result<impl IntoResponse + use<>, ApiError> {
    let record = app.operations().read_run(actor, run).await?;
    let location = [(LOCATION, format!("/api/v1/runs/{run}"))];
    Ok((StatusCode::ACCEPTED, location, Json(wire::run(record))))
}
