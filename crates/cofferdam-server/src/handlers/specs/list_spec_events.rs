//! `GET /api/v1/specs/{id}/events`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cofferdam_api::{SpecEventResponse, SpecEventsPage, SpecEventsQuery, SpecIdText};
use cofferdam_core::SpecId;
use cofferdam_operations::SpecPosition;
use http::HeaderMap;

use super::stream;
use crate::access::Caller;
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::{Path, Query};
use crate::handlers::stream::is_wanted;

/// The events of all runs of a spec, one run after the other: a page of JSON, or with `Accept: text/event-stream` a stream that
/// goes on from run to run until none is under way. Each frame has `RUN.SEQ` as its `id`; the last one is of the kind `end`. A
/// reader that was cut off sends `Last-Event-ID` and misses nothing.
#[utoipa::path(get, path = "/api/v1/specs/{id}/events", tag = "specs",
    params(("id" = inline(SpecIdText), Path), SpecEventsQuery,
        ("Last-Event-ID" = Option<String>, Header, pattern = "^run_[0-9a-hjkmnp-tv-z]{26}\\.[0-9]{1,15}$",
            description = "The `id` of the last frame that was seen.")),
    responses(
    (status = 200, description = "The events.", content((SpecEventsPage = "application/json"), (String = "text/event-stream"))),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn list_spec_events(
    caller: Caller,
    State(app): State<App>,
    Path(id): Path<SpecId>,
    Query(query): Query<SpecEventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let after = position(&headers, &query)?;
    if is_wanted(&headers) {
        app.operations().read_spec(&caller.actor, &id).await?;
        return stream::stream(&app, &caller, &id, after).await;
    }
    let page = app.operations().read_spec_events(&caller.actor, &id, after, query.limit).await?;
    let event = |told: cofferdam_operations::SpecEvent| SpecEventResponse {
        run_id: told.run,
        event: told.event.into(),
    };
    let events = page.events.into_iter().map(event).collect();
    let next_after = page.next_after.map(|place| place.to_string());
    Ok(Json(SpecEventsPage { spec_id: id, events, next_after, ended: page.ended }).into_response())
}

fn position(headers: &HeaderMap, query: &SpecEventsQuery) -> Result<Option<SpecPosition>, ApiError> {
    let asked = query.after.as_deref().map(str::parse).transpose()?;
    match headers.get("last-event-id").filter(|value| !value.is_empty()) {
        Some(value) => {
            let place = value.to_str().ok().and_then(|text| text.parse().ok());
            let hint = "send the `id` of the last frame that was seen";
            place.map(Some).ok_or_else(|| {
                ApiError::invalid_field("Last-Event-ID", "it is not a place in the events of a spec", hint)
            })
        }
        None => Ok(asked),
    }
}
