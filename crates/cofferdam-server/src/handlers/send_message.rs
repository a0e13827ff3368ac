//! `POST /api/v1/runs/{id}/messages`.

use axum::Json;
use cofferdam_api::{MessageResponse, RunIdText, SendMessageRequest};
use cofferdam_core::{Actor, MessageState, RunId};
use http::StatusCode;

use crate::access::By;
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::{self, Path};

/// Says something to a live agent. The receipt is in the list of messages, and an event of the run.
#[utoipa::path(post, path = "/api/v1/runs/{id}/messages", tag = "runs", request_body = SendMessageRequest,
    params(("id" = inline(RunIdText), Path)), responses(
    (status = 202, description = "It waits for delivery.", body = MessageResponse),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "The run has ended.", body = cofferdam_api::ErrorBody),
    (status = 429, description = "As many messages wait as may.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn send_message(
    By(actor, app): By,
    Path(id): Path<RunId>,
    extract::Json(message): extract::Json<SendMessageRequest>,
) -> Result<(StatusCode, Json<MessageResponse>), ApiError> {
    send(&app, &actor, &id, message).await
}

/// Says something to the agent of a run.
pub(super) async fn send(
    app: &App,
    actor: &Actor,
    id: &RunId,
    message: SendMessageRequest,
) -> Result<(StatusCode, Json<MessageResponse>), ApiError> {
    let SendMessageRequest { kind, content } = message;
    let sent = app.operations().send_message(actor, id, kind, &content).await?;
    let answer = MessageResponse {
        id: sent.id.number(),
        kind,
        content,
        state: MessageState::Accepted,
        reason: None,
        created_at_ms: sent.created_at_ms,
        settled_at_ms: None,
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}
