//! `POST /api/v1/runs/{id}/messages`.

use axum::Json;
use axum::extract::State;
use cofferdam_api::{MessageResponse, MessageState, RunIdText, SendMessageRequest};
use cofferdam_core::{MessageKind, RunId};
use http::StatusCode;
use serde_json::json;

use crate::access::{Caller, May, Run};
use crate::app::{App, now_ms};
use crate::errors::ApiError;
use crate::extract::{self, Path};

const LONGEST: usize = 100_000;

/// Says something to a live agent. The receipt is in the list of messages, and an event of the run.
#[utoipa::path(post, path = "/api/v1/runs/{id}/messages", tag = "runs", request_body = SendMessageRequest,
    params(("id" = inline(RunIdText), Path)), responses(
    (status = 202, description = "It waits for delivery.", body = MessageResponse),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "The run has ended.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn send_message(
    may: May<Run>,
    State(app): State<App>,
    Path(id): Path<RunId>,
    extract::Json(message): extract::Json<SendMessageRequest>,
) -> Result<(StatusCode, Json<MessageResponse>), ApiError> {
    send(&app, may.caller(), &id, message).await
}

/// Says something to the agent of a run.
pub(super) async fn send(
    app: &App,
    caller: &Caller,
    id: &RunId,
    message: SendMessageRequest,
) -> Result<(StatusCode, Json<MessageResponse>), ApiError> {
    let SendMessageRequest { kind, content } = message;
    let is_bad = content.contains('\0')
        || content.chars().count() > LONGEST
        || (content.trim().is_empty() && kind != MessageKind::Interrupt);
    if is_bad {
        let hint = "write 1 to 100000 characters without NUL; only an `interrupt` may say nothing";
        return Err(ApiError::invalid_field("content", "it cannot be said", hint));
    }
    let record = app.store().run(id).await?;
    if record.state.is_final() {
        return Err(cofferdam_store::Error::RunEnded { run: id.clone() }.into());
    }
    app.audit(caller, "run.message", id.as_str(), json!({ "kind": kind })).await?;
    let now_ms = now_ms();
    let sent = app.store().add_message(id, kind, &content, now_ms).await?;
    app.store().wake();
    let answer = MessageResponse {
        id: sent.number(),
        kind,
        content,
        state: MessageState::Accepted,
        reason: None,
        created_at_ms: now_ms,
        settled_at_ms: None,
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}
