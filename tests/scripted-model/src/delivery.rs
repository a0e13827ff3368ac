//! Sends an answer, whole or as a stream, and cuts it where the script says so.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::answer::{Answer, Cut, Failure, Garbage};
use crate::api::{Turn, error_body};
use crate::conversation::{Api, Conversation};
use crate::record::{Ending, InFlight};

/// The connection is to be dropped here.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the script cuts the connection")]
pub(crate) struct CutHere;

pub(crate) type Reply = Response<BoxBody<Bytes, CutHere>>;

/// Answers a call as the script says.
pub(crate) async fn deliver(
    answer: Answer,
    asked: &Conversation,
    in_flight: InFlight,
) -> Result<Reply, CutHere> {
    if let Some(hold) = answer.wait_for.as_ref().filter(|hold| hold.after_events == 0) {
        in_flight.hold(&hold.gate).await;
    }
    if answer.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
    }
    // What does not come as a stream has no events: it is cut as a whole.
    if answer.cut.is_some_and(|cut| cut == Cut::BeforeHeaders || !asked.stream) {
        in_flight.end(Ending::Cut);
        return Err(CutHere);
    }
    let reply = if let Some(error) = &answer.error {
        failure(asked.api, error)
    } else if let Some(garbage) = answer.garbage {
        nonsense(garbage, asked.stream)
    } else {
        match Turn::of(&answer, asked, in_flight.number() as u64) {
            Ok(turn) if asked.stream => return Ok(stream(answer, turn.events(asked.api), in_flight)),
            Ok(turn) => json(StatusCode::OK, &turn.body(asked.api)),
            // Not a status that a CLI would try again.
            Err(error) => {
                json(StatusCode::BAD_REQUEST, &error_body(Some(asked.api), 400, &error.to_string()))
            }
        }
    };
    in_flight.end(Ending::Answered);
    Ok(reply)
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: &Value) -> Reply {
    whole(status, "application/json", body.to_string())
}

fn failure(api: Api, error: &Failure) -> Reply {
    // Checked here and not when the script is read, so that scripts built in code are checked too.
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = error
        .body
        .clone()
        .unwrap_or_else(|| error_body(Some(api), error.status, "the script says so").to_string());
    let mut reply = whole(status, "application/json", body);
    for (name, value) in &error.headers {
        let pair = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()));
        if let (Ok(name), Ok(value)) = pair {
            reply.headers_mut().insert(name, value);
        }
    }
    reply
}

fn nonsense(garbage: Garbage, stream: bool) -> Reply {
    let right = if stream { EVENT_STREAM } else { "application/json" };
    match garbage {
        Garbage::NotJson if stream => {
            whole(StatusCode::OK, right, "event: message_start\ndata: {\"type\": nonsense\n\n")
        }
        Garbage::NotJson => whole(StatusCode::OK, right, "{\"type\": nonsense"),
        Garbage::WrongContentType => {
            whole(StatusCode::OK, "text/html", "<!doctype html><title>Sign in to the network</title>")
        }
        Garbage::Empty => whole(StatusCode::OK, right, ""),
    }
}

const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

fn whole(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(|never: Infallible| match never {});
    reply(status, content_type, body.boxed())
}

fn reply(status: StatusCode, content_type: &'static str, body: BoxBody<Bytes, CutHere>) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

fn stream(answer: Answer, events: Vec<String>, in_flight: InFlight) -> Reply {
    // One event at a time: what the client has not taken is not sent, and that it left is noticed.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(play(answer, events, in_flight, sender));
    reply(StatusCode::OK, EVENT_STREAM, Events { receiver, cut: false }.boxed())
}

async fn play(
    answer: Answer,
    events: Vec<String>,
    in_flight: InFlight,
    sender: mpsc::Sender<Result<Bytes, CutHere>>,
) {
    let count = events.len();
    for (sent, event) in events.into_iter().enumerate() {
        match answer.cut {
            Some(Cut::AfterEvents(after)) if after == sent => return cut(in_flight, &sender).await,
            Some(Cut::MidEvent(after)) if after == sent => {
                let half = Bytes::copy_from_slice(&event.as_bytes()[..event.len() / 2]);
                if sender.send(Ok(half)).await.is_ok() {
                    cut(in_flight, &sender).await;
                }
                return;
            }
            Some(Cut::BeforeHeaders | Cut::AfterEvents(_) | Cut::MidEvent(_)) | None => {}
        }
        let hold = answer.wait_for.as_ref().filter(|hold| hold.after_events > 0);
        if let Some(hold) = hold.filter(|hold| hold.after_events.min(count - 1) == sent) {
            tokio::select! {
                () = in_flight.hold(&hold.gate) => {}
                () = sender.closed() => return,
            }
        }
        if answer.chunk_delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(answer.chunk_delay_ms)).await;
        }
        if sender.send(Ok(event.into())).await.is_err() {
            return;
        }
    }
    in_flight.end(Ending::Answered);
}

async fn cut(in_flight: InFlight, sender: &mpsc::Sender<Result<Bytes, CutHere>>) {
    in_flight.end(Ending::Cut);
    // That the client left first changes nothing: the stream ends either way.
    let _ = sender.send(Err(CutHere)).await;
}

/// The body of a stream.
struct Events {
    receiver: mpsc::Receiver<Result<Bytes, CutHere>>,
    cut: bool,
}

impl Body for Events {
    type Data = Bytes;
    type Error = CutHere;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutHere>>> {
        if self.cut {
            return Poll::Ready(Some(Err(CutHere)));
        }
        match self.receiver.poll_recv(context) {
            Poll::Ready(Some(Err(CutHere))) => {
                // The server writes what went before only when the body has nothing more to give just now;
                // an error at once would discard it.
                self.cut = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(Some(Ok(event))) => Poll::Ready(Some(Ok(Frame::data(event)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}
