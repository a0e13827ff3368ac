//! `GET /system/processes/{name}/logs`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use cofferdam_api::{ErrorCode, LogLine, ProcessLogQuery, ProcessLogResponse, sse};
use futures_util::stream;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

use crate::access::{By, Caller};
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::{Path, Query};
use crate::handlers::stream::is_wanted;
use crate::process_logs::FollowedLog;

const USUAL: u32 = 100;
const MOST: u32 = 10_000;
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The kind of a frame that is a line.
const LINE: &str = "log";

/// The last lines of a process's log; with `Accept: text/event-stream` these and what follows, a frame of the kind `log` for
/// each line.
#[utoipa::path(get, path = "/system/processes/{name}/logs", tag = "system", params(("name" = String, Path), ProcessLogQuery), responses(
    (status = 200, description = "The lines.", content((ProcessLogResponse = "application/json"), (String = "text/event-stream"))),
    (status = 404, description = "There is no such process or service.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "The log is on the machine of another service.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn process_log(
    By(actor, app): By,
    caller: Caller,
    Path(name): Path<String>,
    Query(query): Query<ProcessLogQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let asked =
        cofferdam_operations::AskedService { own: &app.options().service, named: query.service.as_deref() };
    let process = app.operations().read_process(&actor, asked, &name).await?;
    let count = query.lines.unwrap_or(USUAL);
    if count == 0 || count > MOST {
        return Err(ApiError::invalid_field("lines", "out of range (1 to 10000)", "ask for fewer lines"));
    }
    if process.service.id != app.options().service {
        let listen = process.service.record.as_ref().map_or("", |record| record.report.listen.as_str());
        let service = process.service.name();
        let text =
            format!("the log of {name} is on the machine of the service `{service}`; ask it at {listen}");
        return Err(ApiError::new(ErrorCode::ProcessElsewhere, text)
            .with(json!({ "service": process.service.id, "listen": listen })));
    }
    let logs = Arc::clone(&app.options().logs);
    let opened = tokio::task::spawn_blocking(move || logs.open(process.name, count as usize)).await;
    let (last, log) = opened.map_err(|_| unreadable())?.map_err(|_| unreadable())?;
    if is_wanted(&headers) {
        return follow(&app, caller, last, log);
    }
    let lines = last.lines().map(str::to_owned).collect();
    Ok(Json(ProcessLogResponse { name, log_path: process.report.log_path, lines }).into_response())
}

fn unreadable() -> ApiError {
    ApiError::new(ErrorCode::InternalError, "the log cannot be read")
}

struct Open {
    log: Box<dyn FollowedLog>,
    text: String,
    heartbeat_at: Instant,
    app: App,
    caller: Caller,
    is_revoked: bool,
    _permit: OwnedSemaphorePermit,
}

fn follow(app: &App, caller: Caller, last: String, log: Box<dyn FollowedLog>) -> Result<Response, ApiError> {
    let permit = Arc::clone(app.streams())
        .try_acquire_owned()
        .map_err(|_| ApiError::new(ErrorCode::Busy, "there are too many open streams of events"))?;
    let heartbeat_at = Instant::now() + app.bounds().heartbeat;
    let open =
        Open { log, text: last, heartbeat_at, app: app.clone(), caller, is_revoked: false, _permit: permit };
    let first = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from_static(b": open\n\n"))]);
    let body = Body::from_stream(futures_util::StreamExt::chain(first, stream::unfold(open, next)));
    let headers = [(CONTENT_TYPE, sse::MEDIA_TYPE), (CACHE_CONTROL, "no-store")];
    Ok((headers, [("x-accel-buffering", "no")], body).into_response())
}

/// What is said next. A line that is not whole yet waits for its rest.
async fn next(mut open: Open) -> Option<(Result<Bytes, std::convert::Infallible>, Open)> {
    loop {
        if open.is_revoked {
            return None;
        }
        if !open.caller.is_still_known(&open.app).await {
            open.is_revoked = true;
            return Some((Ok(Bytes::from_static(sse::REVOKED.as_bytes())), open));
        }
        if let Some(end) = open.text.rfind('\n') {
            let rest = open.text.split_off(end + 1);
            let lines = std::mem::replace(&mut open.text, rest);
            let frames: String = lines
                .lines()
                .map(|line| sse::frame(None, LINE, &json!(LogLine { line: line.to_owned() }).to_string()))
                .collect();
            open.heartbeat_at = Instant::now() + open.app.bounds().heartbeat;
            return Some((Ok(Bytes::from(frames)), open));
        }
        if open.heartbeat_at <= Instant::now() {
            open.heartbeat_at = Instant::now() + open.app.bounds().heartbeat;
            return Some((Ok(Bytes::from_static(sse::HEARTBEAT.as_bytes())), open));
        }
        sleep(LOOK_EVERY).await;
        // A log that cannot be read ends the stream; its reader asks again.
        let more = open.log.more().ok()?;
        open.text.push_str(&more);
    }
}
