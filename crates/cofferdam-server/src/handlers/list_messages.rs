//! `GET /api/v1/runs/{id}/messages`.

use axum::Json;
use cofferdam_api::{MessageList, RunIdText};
use cofferdam_core::{Actor, RunId};

use crate::access::By;
use crate::app::App;
use crate::errors::Answer;
use crate::extract::Path;
use crate::wire;

/// The messages into a run, with their receipts.
#[utoipa::path(get, path = "/api/v1/runs/{id}/messages", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 200, description = "The oldest first.", body = MessageList),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn list_messages(By(actor, app): By, Path(id): Path<RunId>) -> Answer<MessageList> {
    messages(&app, &actor, &id).await
}

/// The messages into a run.
pub(super) async fn messages(app: &App, actor: &Actor, id: &RunId) -> Answer<MessageList> {
    let messages = app.operations().read_messages(actor, id).await?;
    let messages = messages.into_iter().map(wire::message).collect();
    Ok(Json(MessageList { messages }))
}
