//! `GET /api/v1/runs/{id}/events`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cofferdam_api::{EventsPage, EventsQuery, RunIdText};
use cofferdam_core::RunId;
use http::HeaderMap;

use super::stream;
use crate::access::{May, Read};
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::{Path, Query};

const USUAL: u32 = 500;
const MOST: u32 = 1_000;

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
    _may: May<Read>,
    State(app): State<App>,
    Path(id): Path<RunId>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    events(&app, &id, &query, &headers).await
}

/// The events of a run, in the form that the caller wants.
pub(super) async fn events(
    app: &App,
    id: &RunId,
    query: &EventsQuery,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let limit = query.limit.unwrap_or(USUAL);
    if limit == 0 || limit > MOST {
        return Err(ApiError::invalid_field(
            "limit",
            "it is out of its bounds",
            "write a number from 1 to 1000",
        ));
    }
    let after = stream::after(headers, query.after)?;
    // The state is read first: a run that has ended adds no event, so what is read after that is all.
    let record = app.store().run(id).await?;
    if stream::is_wanted(headers) {
        return stream::stream(app, id, after);
    }
    let events = app.store().events_after(id, after, limit).await?;
    let next_after = events.last().map_or(after, |event| event.seq);
    let ended = record.state.is_final() && next_after >= record.last_seq;
    let events = events.into_iter().map(Into::into).collect();
    Ok(Json(EventsPage { run_id: id.clone(), events, next_after, ended }).into_response())
}
