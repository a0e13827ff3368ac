//! A run's events as a stream of frames.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use cofferdam_api::{ErrorCode, sse};
use cofferdam_core::RunId;
use futures_util::{Stream, stream};
use http::HeaderMap;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use tokio::sync::OwnedSemaphorePermit;

use crate::access::Caller;
use crate::app::App;
use crate::errors::ApiError;
use crate::hub::{News, Reader};
use crate::metrics::Counted;

/// After the store has failed: the reader stays, and what it misses is read when the store is back.
pub(super) const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The largest number that every reader of JSON takes exactly.
const MOST_SEQ: u64 = (1 << 53) - 1;

/// Whether the caller wants a stream.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(sse::MEDIA_TYPE))
    })
}

/// Where a stream begins: behind the last event that its reader has seen.
pub(super) fn after(headers: &HeaderMap, asked: Option<u64>) -> Result<u64, ApiError> {
    let bounded = |field: &str, number: Option<u64>| {
        let hint = "send the last number that was seen";
        number
            .filter(|number| *number <= MOST_SEQ)
            .ok_or_else(|| ApiError::invalid_field(field, "it is not the number of an event", hint))
    };
    let asked = asked.map(|asked| bounded("after", Some(asked))).transpose()?;
    match headers.get("last-event-id") {
        Some(value) => {
            bounded("Last-Event-ID", value.to_str().ok().and_then(|text| text.trim().parse().ok()))
        }
        None => Ok(asked.unwrap_or(0)),
    }
}

/// The stream of a run that is on record, to somebody who may read it. It is cut when their key is revoked.
pub(super) fn stream(app: &App, caller: &Caller, run: &RunId, after: u64) -> Result<Response, ApiError> {
    let permit = place(app)?;
    let open = Open {
        reader: app.hub().read(run, after),
        heartbeat: app.bounds().heartbeat,
        app: app.clone(),
        caller: caller.clone(),
        has_begun: false,
        is_revoked: false,
        _permit: permit,
        _counted: app.metrics().stream(),
    };
    Ok(response(stream::unfold(open, next)))
}

/// A place among the open streams.
pub(super) fn place(app: &App) -> Result<OwnedSemaphorePermit, ApiError> {
    let place = std::sync::Arc::clone(app.streams()).try_acquire_owned();
    place.map_err(|_| ApiError::new(ErrorCode::Busy, "there are too many open streams of events"))
}

/// Frames on their way.
pub(super) fn response(frames: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let headers = [(CONTENT_TYPE, sse::MEDIA_TYPE), (CACHE_CONTROL, "no-store")];
    // A proxy that collects an answer before it passes it on would pass on nothing.
    (headers, [("x-accel-buffering", "no")], Body::from_stream(frames)).into_response()
}

struct Open {
    reader: Reader,
    heartbeat: Duration,
    app: App,
    caller: Caller,
    has_begun: bool,
    is_revoked: bool,
    _permit: OwnedSemaphorePermit,
    _counted: Counted,
}

async fn next(mut open: Open) -> Option<(Result<Bytes, Infallible>, Open)> {
    if !open.has_begun {
        open.has_begun = true;
        // The head goes out at once, so that whoever waits for events knows that they will come.
        return Some((Ok(Bytes::from_static(b": open\n\n")), open));
    }
    if open.is_revoked {
        return None;
    }
    let next = tokio::select! {
        next = open.reader.next() => Some(next),
        () = tokio::time::sleep(open.heartbeat) => None,
        () = open.caller.until_unknown(&open.app) => None,
    };
    // Asked after the wait and before anything is sent, so that nothing of what came later than the revocation goes out.
    if !open.caller.is_still_known(&open.app).await {
        open.is_revoked = true;
        return Some((Ok(Bytes::from_static(sse::REVOKED.as_bytes())), open));
    }
    let frames = match next {
        None => return Some((Ok(Bytes::from_static(sse::HEARTBEAT.as_bytes())), open)),
        Some(Ok(frames)) => frames,
        Some(Err(_)) => {
            tokio::time::sleep(AFTER_FAILURE).await;
            return Some((Ok(Bytes::from_static(sse::HEARTBEAT.as_bytes())), open));
        }
    };
    match frames {
        News::Events(frames) => {
            open.app.metrics().sent(frames.len());
            Some((Ok(Bytes::from(frames.concat())), open))
        }
        News::End(end) => {
            let data = serde_json::to_string(&end).expect("the end of a run is plain JSON");
            Some((Ok(Bytes::from(sse::frame(None, sse::END, &data))), open))
        }
        News::Over => None,
    }
}
