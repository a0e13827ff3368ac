//! An answer as a stream of frames, while it is made.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use cofferdam_api::sdk::{delta_frame, frame_of, frames};
use cofferdam_api::{SdkStart, sse};
use cofferdam_core::{Delta, Event, RunId};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use super::answered;
use super::stream::{AFTER_FAILURE, response};
use crate::access::{Caller, unknown_key};
use crate::app::App;
use crate::errors::ApiError;
use crate::hub::{News, Reader};
use crate::metrics::Counted;
use crate::request_id::RequestId;

/// The stream of a run that is on record, to somebody who may read it, from the event after this number.
pub(super) fn stream(
    app: &App,
    caller: &Caller,
    run: &RunId,
    after: u64,
    model: &str,
    request_id: &RequestId,
) -> Result<Response, ApiError> {
    let permit = super::stream::place(app)?;
    let reader = app.hub().read(run, after);
    let open = Open {
        deltas: reader.deltas(),
        reader,
        told: None,
        heartbeat: app.bounds().heartbeat,
        app: app.clone(),
        caller: caller.clone(),
        run: run.clone(),
        model: model.to_owned(),
        request_id: request_id.clone(),
        stage: Stage::Beginning,
        _permit: permit,
        _counted: app.metrics().stream(),
    };
    Ok(response(stream::unfold(open, next)))
}

struct Open {
    reader: Reader,
    deltas: Receiver<Delta>,
    /// The last block that was told whole. A piece of it, or of one before it, comes too late.
    told: Option<(u32, u32, u32)>,
    heartbeat: Duration,
    app: App,
    caller: Caller,
    run: RunId,
    model: String,
    request_id: RequestId,
    stage: Stage,
    _permit: OwnedSemaphorePermit,
    _counted: Counted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Beginning,
    Telling,
    Over,
}

/// What happens next.
enum Next {
    Delta(Delta),
    Events(Vec<Event>),
    End,
    Gone,
    Nothing,
    StoreFailed,
}

async fn next(mut open: Open) -> Option<(Result<Bytes, Infallible>, Open)> {
    let told = match open.stage {
        Stage::Over => return None,
        Stage::Beginning => {
            open.stage = Stage::Telling;
            let start = SdkStart {
                run_id: open.run.clone(),
                request_id: open.request_id.as_str().to_owned(),
                model: open.model.clone(),
            };
            frame(None, frames::START, &start)
        }
        Stage::Telling => open.tell().await?,
    };
    Some((Ok(told.into()), open))
}

impl Open {
    /// The next frames; `None` if there will be none.
    async fn tell(&mut self) -> Option<String> {
        let silent_until = Instant::now() + self.heartbeat;
        loop {
            let next = self.wait(silent_until).await;
            // Asked after the wait and before anything is sent, so that nothing of what came later than the revocation
            // of a key goes out.
            if !self.caller.is_still_known(&self.app).await {
                self.stage = Stage::Over;
                return Some(frame(None, frames::ERROR, &unknown_key().body(self.request_id.as_str())));
            }
            let told = match next {
                Next::Delta(delta) if self.told.is_some_and(|told| delta.block() <= told) => String::new(),
                Next::Delta(delta) => frame(None, delta_frame(&delta), &delta),
                Next::Events(events) => events.iter().map(|event| self.whole(event)).collect(),
                Next::End => self.ending().await,
                Next::Gone => return None,
                Next::Nothing => sse::HEARTBEAT.to_owned(),
                Next::StoreFailed => {
                    tokio::time::sleep(AFTER_FAILURE).await;
                    sse::HEARTBEAT.to_owned()
                }
            };
            if !told.is_empty() {
                return Some(told);
            }
        }
    }

    async fn wait(&mut self, silent_until: Instant) -> Next {
        tokio::select! {
            // What was said first is told first, as far as there is an order.
            biased;
            delta = self.deltas.recv() => match delta {
                Ok(delta) => Next::Delta(delta),
                // It never closes: the reader keeps the run, and with it the sender.
                Err(RecvError::Lagged(_) | RecvError::Closed) => Next::Events(Vec::new()),
            },
            news = self.reader.next_events() => match news {
                Ok(News::Events(events)) => Next::Events(events),
                Ok(News::End(_)) => Next::End,
                Ok(News::Over) => Next::Gone,
                Err(_) => Next::StoreFailed,
            },
            () = sleep_until(silent_until) => Next::Nothing,
            () = self.caller.until_unknown(&self.app) => Next::Nothing,
        }
    }

    /// An event as a frame, if it says something of the answer.
    fn whole(&mut self, event: &Event) -> String {
        let Some(kind) = frame_of(event.event_type) else { return String::new() };
        let number = |name: &str| event.data[name].as_u64().and_then(|number| u32::try_from(number).ok());
        if let (frames::TEXT | frames::THINKING, Some(attempt), Some(turn), Some(index)) =
            (kind, event.attempt, number("turn"), number("index"))
        {
            self.told = self.told.max(Some((attempt, turn, index)));
        }
        self.app.metrics().sent(1);
        frame(Some(event.seq), kind, &event.data)
    }

    /// The last frame: what the same call without a stream is answered with.
    async fn ending(&mut self) -> String {
        self.stage = Stage::Over;
        let name = self.request_id.as_str();
        match answered::answer(&self.app, &self.caller.actor, &self.run, name).await {
            Ok(answer) => frame(None, frames::RESULT, &answer),
            Err(error) => frame(None, frames::ERROR, &error.body(name)),
        }
    }
}

fn frame(id: Option<u64>, kind: &str, data: &impl Serialize) -> String {
    sse::frame(id, kind, &serde_json::to_string(data).expect("what is answered is plain JSON"))
}
