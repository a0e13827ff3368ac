//! `GET /api/v1/runs/{id}/events`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cofferdam_api::{EventsPage, EventsQuery, RunIdText};
use cofferdam_core::RunId;
use http::HeaderMap;

use super::stream;
use crate::access::Caller;
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::{Path, Query};

/// A run's events: a page of JSON, or with `Accept: text/event-stream` a stream that goes on until the run has ended. Each
/// frame has the event's number as its `id`; the last one is of the kind `end`. A reader that was cut off sends
/// `Last-Event-ID` and misses nothing.
#[utoipa::path(get, path = "/api/v1/runs/{id}/events", tag = "runs",
    params(("id" = inline(RunIdText), Path), EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,15}$",
            description = "The number of the last event that was seen.")),
    responses(
    (status = 200, description = "The events.", content((EventsPage = "application/json"), (String = "text/event-stream"))),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn list_events(
    caller: Caller,
    State(app): State<App>,
    Path(id): Path<RunId>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    events(&app, &caller, &id, &query, &headers).await
}

/// The events of a run, in the form that the caller wants.
pub(super) async fn events(
    app: &App,
    caller: &Caller,
    id: &RunId,
    query: &EventsQuery,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let after = stream::after(headers, query.after)?;
    if stream::is_wanted(headers) {
        app.operations().read_run(&caller.actor, id).await?;
        return stream::stream(app, caller, id, after);
    }
    let page = app.operations().read_events(&caller.actor, id, after, query.limit).await?;
    let events = page.events.into_iter().map(Into::into).collect();
    let (next_after, ended) = (page.next_after, page.ended);
    Ok(Json(EventsPage { run_id: id.clone(), events, next_after, ended }).into_response())
}
