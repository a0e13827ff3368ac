//! `GET /api/v1/sandboxes/{id}/events`: the events of the run that a sandbox is an attempt of.

use axum::extract::State;
use axum::response::Response;
use cofferdam_api::{EventsPage, EventsQuery, SandboxIdText};
use cofferdam_core::SandboxId;
use http::HeaderMap;

use super::list_events::events;
use crate::access::Caller;
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::{Path, Query};

/// The events of a sandbox's run, as `/api/v1/runs/{id}/events` has them. Nobody reports events here: what is inside a
/// sandbox speaks through its worker alone.
#[utoipa::path(get, path = "/api/v1/sandboxes/{id}/events", tag = "sandboxes",
    params(("id" = inline(SandboxIdText), Path), EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,15}$",
            description = "The number of the last event that was seen.")),
    responses(
    (status = 200, description = "The events.", content((EventsPage = "application/json"), (String = "text/event-stream"))),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn sandbox_events(
    caller: Caller,
    State(app): State<App>,
    Path(id): Path<SandboxId>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    events(&app, &caller, &id.attempt().run, &query, &headers).await
}
