//! `GET /api/v1/runs/{id}/messages`.

use axum::Json;
use cofferdam_api::{MessageList, MessagesQuery, RunIdText};
use cofferdam_core::{Actor, RunId};

use crate::access::By;
use crate::app::App;
use crate::errors::Answer;
use crate::extract::{Path, Query};
use crate::wire;

/// The messages into a run, with their receipts.
#[utoipa::path(get, path = "/api/v1/runs/{id}/messages", tag = "runs",
    params(("id" = inline(RunIdText), Path), MessagesQuery), responses(
    (status = 200, description = "The oldest first.", body = MessageList),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn list_messages(
    By(actor, app): By,
    Path(id): Path<RunId>,
    Query(query): Query<MessagesQuery>,
) -> Answer<MessageList> {
    messages(&app, &actor, &id, query).await
}

/// The messages into a run.
pub(super) async fn messages(
    app: &App,
    actor: &Actor,
    id: &RunId,
    query: MessagesQuery,
) -> Answer<MessageList> {
    let MessagesQuery { after, limit } = query;
    let page = app.operations().read_messages(actor, id, after.unwrap_or_default(), limit).await?;
    let messages = page.messages.into_iter().map(wire::message).collect();
    Ok(Json(MessageList { messages, next_after: page.next_after }))
}
