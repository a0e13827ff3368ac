//! `/api/v1/sandboxes/{id}/messages`: says something to the agent in a sandbox.

use axum::Json;
use cofferdam_api::{MessageList, MessageResponse, MessagesQuery, SandboxIdText, SendMessageRequest};
use cofferdam_core::SandboxId;
use http::StatusCode;

use super::list_messages::messages;
use super::send_message::send;
use crate::access::By;
use crate::errors::{Answer, ApiError};
use crate::extract::{self, Path, Query};

/// The messages into a sandbox's run, with their receipts.
#[utoipa::path(get, path = "/api/v1/sandboxes/{id}/messages", tag = "sandboxes",
    params(("id" = inline(SandboxIdText), Path), MessagesQuery), responses(
    (status = 200, description = "The oldest first.", body = MessageList),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn list_sandbox_messages(
    By(actor, app): By,
    Path(id): Path<SandboxId>,
    Query(query): Query<MessagesQuery>,
) -> Answer<MessageList> {
    messages(&app, &actor, &id.attempt().run, query).await
}

/// Says something to the agent of a sandbox's run.
#[utoipa::path(post, path = "/api/v1/sandboxes/{id}/messages", tag = "sandboxes", request_body = SendMessageRequest,
    params(("id" = inline(SandboxIdText), Path)), responses(
    (status = 202, description = "It waits for delivery.", body = MessageResponse),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "The run has ended.", body = cofferdam_api::ErrorBody),
    (status = 429, description = "As many messages wait as may.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn send_sandbox_message(
    By(actor, app): By,
    Path(id): Path<SandboxId>,
    extract::Json(message): extract::Json<SendMessageRequest>,
) -> Result<(StatusCode, Json<MessageResponse>), ApiError> {
    send(&app, &actor, &id.attempt().run, message).await
}
