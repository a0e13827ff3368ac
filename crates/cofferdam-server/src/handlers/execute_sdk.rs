//! `POST /execute/sdk`: a question to a model, and a wait for its answer.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cofferdam_api::{ErrorCode, ExecuteSdkRequest, RunIdText, SdkResponse};
use cofferdam_core::{Actor, InputSyntax, RunId};
use cofferdam_operations::{Judged, NewAsk, Way};
use http::HeaderMap;

use super::preference::{APPLIED, Preference};
use super::{answered, answers, create_run, stream};
use crate::access::Caller;
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::{self, Path};
use crate::request_id::RequestId;
use crate::surroundings::ServiceSurroundings;

/// Asks a model, and answers when it has. No process is started for it: the model has tools that read, and none that write
/// or run anything. With `options.stream` or `Accept: text/event-stream` the answer is told while it is made, in frames
/// `start`, `text_delta`, `thinking_delta`, `text`, `thinking`, `tool_use`, `tool_result` and `usage`, and at last `result`
/// (the same object) or `error`. `Prefer` is understood as by `POST /execute`. Whoever hangs up leaves the run to itself:
/// `GET /execute/sdk/{id}` has its answer.
#[utoipa::path(post, path = "/execute/sdk", tag = "runs", request_body = ExecuteSdkRequest,
    params(
        ("Prefer" = Option<String>, Header, description = "How long to wait: `respond-async` or `wait=SECONDS`."),
        ("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,200}$",
            description = "A request that is repeated with the same key waits for the first run."),
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,15}$",
            description = "With an `Idempotency-Key`: the number of the last frame that was seen.")),
    responses(
    (status = 200, description = "The answer, also if the model did not get to its end.",
        content((SdkResponse = "application/json"), (String = "text/event-stream"))),
    (status = 202, description = "The run, which has not ended.", body = cofferdam_api::RunResponse,
        headers(("Location" = String, description = "Where it is."), ("Preference-Applied" = String, description = "Which preference."))),
    (status = 401, description = "There is no API key, or it opens nothing (`UNAUTHORIZED`); or the model's server refused the node's (`AUTH_ERROR`).", body = cofferdam_api::ErrorBody),
    (status = 404, description = "There is no such project, or no such run to go on with.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "The key was used for another request, or options conflict.", body = cofferdam_api::ErrorBody),
    (status = 422, description = "There is no such repository, or its host refuses it.", body = cofferdam_api::ErrorBody),
    (status = 429, description = "The model's server said `429` for longer than was waited.", body = cofferdam_api::ErrorBody),
    (status = 502, description = "The model's server failed.", body = cofferdam_api::ErrorBody),
    (status = 504, description = "The run timed out.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn execute_sdk(
    caller: Caller,
    State(app): State<App>,
    axum::Extension(request_id): axum::Extension<RequestId>,
    headers: HeaderMap,
    extract::Json(body): extract::Json<ExecuteSdkRequest>,
) -> Result<Response, ApiError> {
    let wanted = Wanted::of(&headers, body.options.stream)?;
    let key = create_run::idempotency_key(&headers);
    if let (Wanted::Stream { after: 1.. }, None) = (wanted, key) {
        let hint = "send the Idempotency-Key of the first request, or read GET /execute/sdk/{id}";
        return Err(ApiError::invalid_field("Last-Event-ID", "this request begins a run of its own", hint));
    }
    let _waiting = wanted.place(&app)?;
    let judged = judge(&app, &caller.actor, &body).await?;
    let run = app.operations().accept(judged, key).await?.run;
    answer(&app, &caller, &run, wanted, &request_id).await
}

/// The answer to a question that was asked before: when the model has answered, or while it does. The stream begins anew, or
/// behind `Last-Event-ID`.
#[utoipa::path(get, path = "/execute/sdk/{id}", tag = "runs",
    params(("id" = inline(RunIdText), Path),
        ("Prefer" = Option<String>, Header, description = "How long to wait: `respond-async` or `wait=SECONDS`."),
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,15}$",
            description = "The number of the last frame that was seen.")),
    responses(
    (status = 200, description = "The answer, also if the model did not get to its end.",
        content((SdkResponse = "application/json"), (String = "text/event-stream"))),
    (status = 202, description = "The run, which has not ended.", body = cofferdam_api::RunResponse,
        headers(("Location" = String, description = "Where it is."), ("Preference-Applied" = String, description = "Which preference."))),
    (status = 401, description = "There is no API key, or it opens nothing (`UNAUTHORIZED`); or the model's server refused the node's (`AUTH_ERROR`).", body = cofferdam_api::ErrorBody),
    (status = 404, description = "There is no such run, or it has an agent with a process.", body = cofferdam_api::ErrorBody),
    (status = 422, description = "There is no such repository, or its host refuses it.", body = cofferdam_api::ErrorBody),
    (status = 429, description = "The model's server said `429` for longer than was waited.", body = cofferdam_api::ErrorBody),
    (status = 502, description = "The model's server failed.", body = cofferdam_api::ErrorBody),
    (status = 504, description = "The run timed out.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_answer(
    caller: Caller,
    State(app): State<App>,
    axum::Extension(request_id): axum::Extension<RequestId>,
    Path(id): Path<RunId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let wanted = Wanted::of(&headers, None)?;
    // Also where it means nothing: what is no number is a mistake of its sender.
    stream::after(&headers, None)?;
    let _waiting = wanted.place(&app)?;
    answer(&app, &caller, &id, wanted, &request_id).await
}

async fn answer(
    app: &App,
    caller: &Caller,
    run: &RunId,
    wanted: Wanted,
    request_id: &RequestId,
) -> Result<Response, ApiError> {
    let record = app.operations().read_run(&caller.actor, run).await?;
    let Some(setup) = record.request.work.direct() else {
        let message = format!("{run} is no question to a model: GET /api/v1/runs/{run} has what there is");
        return Err(ApiError::new(ErrorCode::RunNotFound, message));
    };
    let preference = match wanted {
        Wanted::Stream { after } => {
            return answers::stream(app, caller, run, after, &setup.model, request_id);
        }
        Wanted::Answer(preference) => preference,
    };
    if preference.wait(app, caller, run).await? {
        let answer = answered::answer(app, &caller.actor, run, request_id.as_str()).await?;
        return Ok(Json(answer).into_response());
    }
    let accepted = create_run::accepted(app, &caller.actor, run).await?;
    Ok(([(APPLIED, preference.applied())], accepted).into_response())
}

async fn judge(app: &App, actor: &Actor, body: &ExecuteSdkRequest) -> Result<Judged, ApiError> {
    let surroundings = ServiceSurroundings::of(app);
    let (syntax, way) = (InputSyntax::Fields, Way::Queued { place: &app.options().place });
    let new = NewAsk { input: body, syntax, way, surroundings: &surroundings };
    Ok(app.operations().judge_ask(actor, &new).await?)
}

/// How the caller wants to be answered.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// When there is an answer.
    Answer(Preference),
    /// While it is made, from the frame after this number.
    Stream { after: u64 },
}

impl Wanted {
    fn of(headers: &HeaderMap, asked: Option<bool>) -> Result<Self, ApiError> {
        match asked.unwrap_or_else(|| stream::is_wanted(headers)) {
            true => Ok(Self::Stream { after: stream::after(headers, None)? }),
            false => Ok(Self::Answer(Preference::of(headers))),
        }
    }

    fn place(self, app: &App) -> Result<Option<tokio::sync::OwnedSemaphorePermit>, ApiError> {
        match self {
            Self::Answer(preference) => preference.place(app),
            // It has a place among the streams.
            Self::Stream { .. } => Ok(None),
        }
    }
}
