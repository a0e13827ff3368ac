//! `POST /execute`: a task, and a wait for what comes of it.

use axum::response::{IntoResponse, Response};
use cofferdam_api::{CreateRunRequest, ExecuteAnswer};
use cofferdam_core::{Actor, RunId};
use http::HeaderMap;

use super::preference::{APPLIED, Preference};
use super::{create_run, executed};
use crate::access::{By, Caller};
use crate::app::App;
use crate::errors::ApiError;
use crate::extract;
use crate::request_id::RequestId;

/// Does a task and answers when it has ended. `Prefer: respond-async` answers at once, and `Prefer: wait=SECONDS` after
/// that time at the latest, with 202 and the run. Whoever hangs up leaves the run to itself, unless
/// `options.cancel_on_disconnect` is set.
#[utoipa::path(post, path = "/execute", tag = "runs", request_body = CreateRunRequest,
    params(
        ("Prefer" = Option<String>, Header, description = "How long to wait: `respond-async` or `wait=SECONDS`."),
        ("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,200}$",
            description = "A request that is repeated with the same key waits for the first run.")),
    responses(
    (status = 200, description = "What came of it, also if the agent failed; what would be run, if `dry_run` is set.", body = ExecuteAnswer),
    (status = 202, description = "The run, which has not ended.", body = cofferdam_api::RunResponse,
        headers(("Location" = String, description = "Where it is."), ("Preference-Applied" = String, description = "Which preference."))),
    (status = 404, description = "There is no such project, agent, policy or path.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "The key was used for another request, or options conflict.", body = cofferdam_api::ErrorBody),
    (status = 422, description = "There is no such repository, branch, tag or commit, or its host refuses it.", body = cofferdam_api::ErrorBody),
    (status = 502, description = "The repository's host does not answer.", body = cofferdam_api::ErrorBody),
    (status = 504, description = "The run timed out.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn execute(
    By(actor, app): By,
    caller: Caller,
    axum::Extension(request_id): axum::Extension<RequestId>,
    headers: HeaderMap,
    extract::Json(body): extract::Json<CreateRunRequest>,
) -> Result<Response, ApiError> {
    if body.dry_run == Some(true) {
        return Ok(axum::Json(create_run::dry_run(&app, &actor, &body).await?).into_response());
    }
    let preference = Preference::of(&headers);
    let _waiting = preference.place(&app)?;
    let run = create_run::accept(&app, &actor, &headers, &body).await?;
    let guard = match body.options.cancel_on_disconnect {
        Some(true) => Some(CancelOnDrop::new(&app, &actor, &run)),
        Some(false) | None => None,
    };
    let has_ended = preference.wait(&app, &caller, &run).await?;
    if let Some(guard) = guard {
        guard.disarm();
    }
    if has_ended {
        return executed::answer(&app, &actor, &run, &body, request_id.as_str()).await;
    }
    let answer = create_run::accepted(&app, &actor, &run).await?;
    Ok(([(APPLIED, preference.applied())], answer).into_response())
}

/// Cancels a run when its caller hangs up: then the handler is dropped where it waits.
struct CancelOnDrop {
    what: Option<(App, Actor, RunId)>,
}

impl CancelOnDrop {
    fn new(app: &App, actor: &Actor, run: &RunId) -> Self {
        Self { what: Some((app.clone(), actor.clone(), run.clone())) }
    }

    fn disarm(mut self) {
        self.what = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((app, actor, run)) = self.what.take() else { return };
        tokio::spawn(async move {
            if app.operations().cancel_run(&actor, &run).await.is_err() {
                tracing::warn!(run.id = %run, "a run whose caller hung up could not be cancelled");
            }
        });
    }
}
