//! A spec's events as a stream of frames, run after run.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use cofferdam_api::{SpecEnd, SpecEventResponse, sse};
use cofferdam_core::{Event, RunId, SpecId};
use cofferdam_operations::{Error, SpecPosition};
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};

use crate::access::Caller;
use crate::app::App;
use crate::errors::ApiError;
use crate::handlers::stream::{AFTER_FAILURE, place, response};
use crate::hub::{News, Reader};
use crate::metrics::Counted;

/// The stream of a spec that is on record, to somebody who may read it. It is cut when their key is revoked.
pub(super) async fn stream(
    app: &App,
    caller: &Caller,
    spec: &SpecId,
    after: Option<SpecPosition>,
) -> Result<Response, ApiError> {
    let permit = place(app)?;
    let at = match after {
        // What is of another spec is not told here, whoever names it.
        Some(SpecPosition { run, seq }) => match app.operations().is_run_of_spec(spec, &run).await? {
            true => At::Run { reader: Box::new(app.hub().read(&run, seq)), run },
            false => At::After(Some(run)),
        },
        None => At::After(None),
    };
    let open = Open {
        at,
        heartbeat: app.bounds().heartbeat,
        app: app.clone(),
        caller: caller.clone(),
        spec: spec.clone(),
        has_begun: false,
        _permit: permit,
        _counted: app.metrics().stream(),
    };
    Ok(response(stream::unfold(open, next)))
}

struct Open {
    at: At,
    heartbeat: Duration,
    app: App,
    caller: Caller,
    spec: SpecId,
    has_begun: bool,
    _permit: OwnedSemaphorePermit,
    _counted: Counted,
}

/// Where the stream is.
enum At {
    /// In this run.
    Run { run: RunId, reader: Box<Reader> },
    /// Behind this run, or before the first one.
    After(Option<RunId>),
    /// Behind the last frame.
    Over,
}

async fn next(mut open: Open) -> Option<(Result<Bytes, Infallible>, Open)> {
    if !open.has_begun {
        open.has_begun = true;
        // The head goes out at once, so that whoever waits for events knows that they will come.
        return Some((Ok(Bytes::from_static(b": open\n\n")), open));
    }
    loop {
        let told = match &open.at {
            At::Over => return None,
            At::Run { .. } => open.read().await?,
            At::After(run) => {
                let run = run.clone();
                open.turn(run.as_ref()).await
            }
        };
        if let Some(told) = told {
            return Some((Ok(told), open));
        }
    }
}

impl Open {
    /// The next frames of the run; `None` inside if there are none and the stream is elsewhere now, and outside if it is cut.
    async fn read(&mut self) -> Option<Option<Bytes>> {
        let At::Run { run, reader } = &mut self.at else { return Some(None) };
        let news = timeout(self.heartbeat, reader.next_events()).await;
        // Asked after the wait and before anything is sent, so that nothing of what came later than the revocation goes out.
        if !self.caller.is_still_known(&self.app).await {
            return None;
        }
        let heartbeat = Bytes::from_static(sse::HEARTBEAT.as_bytes());
        Some(match news {
            Err(_) => Some(heartbeat),
            Ok(Ok(News::Events(events))) => {
                self.app.metrics().sent(events.len());
                Some(events.into_iter().map(|event| frame(run, event)).collect::<String>().into())
            }
            Ok(Ok(News::End(_) | News::Over)) => {
                self.at = At::After(Some(run.clone()));
                None
            }
            Ok(Err(_)) => {
                sleep(AFTER_FAILURE).await;
                Some(heartbeat)
            }
        })
    }

    /// Goes on with the run after this one, which was written before this one ended; or says that there is none.
    async fn turn(&mut self, run: Option<&RunId>) -> Option<Bytes> {
        match self.after(run).await {
            Ok(Some(run)) => {
                let reader = self.app.hub().read(&run, 0);
                self.at = At::Run { run, reader: Box::new(reader) };
                None
            }
            Ok(None) => match self.app.operations().read_spec(&self.caller.actor, &self.spec).await {
                Ok(spec) => {
                    self.at = At::Over;
                    let end = SpecEnd { spec_id: spec.id.clone(), status: spec.status() };
                    let data = serde_json::to_string(&end).expect("the end of a stream is plain JSON");
                    Some(sse::frame(None, sse::END, &data).into())
                }
                Err(Error::Store(_)) => self.wait().await,
                // Nobody may see it any more.
                Err(_) => {
                    self.at = At::Over;
                    None
                }
            },
            Err(_) => self.wait().await,
        }
    }

    async fn after(&self, run: Option<&RunId>) -> Result<Option<RunId>, Error> {
        self.app.operations().spec_run_after(&self.spec, run).await
    }

    async fn wait(&self) -> Option<Bytes> {
        sleep(AFTER_FAILURE).await;
        Some(Bytes::from_static(sse::HEARTBEAT.as_bytes()))
    }
}

fn frame(run: &RunId, event: Event) -> String {
    let kind = event.event_type.as_str();
    let told = SpecEventResponse { run_id: run.clone(), event: event.into() };
    let data = serde_json::to_string(&told).expect("an event is plain JSON");
    sse::frame_at(&told.position(), kind, &data)
}
