//! A run's events as they happen. A stream that is cut is taken up again where it was.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_core::{Event, RunId};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::{Client, ClientError};
use crate::event::RunEnd;
use crate::sse::{END, Frame, MEDIA_TYPE, Reader};

/// The service sends a heartbeat every 15 seconds: a stream that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(45);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often in a row the service may be unreachable before that is said.
const MOST_FAILURES: u32 = 20;

/// A run's events, in order and each once.
pub struct EventStream {
    client: Client,
    run: RunId,
    after: u64,
    open: Option<Open>,
    waiting: VecDeque<Next>,
    failures: u32,
}

struct Open {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    reader: Reader,
}

/// What comes next on a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// An event.
    Event(Event),
    /// The run has ended, and this was all.
    End(RunEnd),
}

impl Client {
    /// `GET /api/v1/runs/{id}/events` as a stream, from the event after this number.
    #[must_use]
    pub fn stream(&self, run: &RunId, after: u64) -> EventStream {
        let (client, run) = (self.clone(), run.clone());
        EventStream { client, run, after, open: None, waiting: VecDeque::new(), failures: 0 }
    }
}

impl EventStream {
    /// The next event, or the run's end. After the end, the end again.
    ///
    /// # Errors
    /// [`ClientError`] if the service refuses, or has been unreachable for a while.
    pub async fn next(&mut self) -> Result<Next, ClientError> {
        loop {
            match self.waiting.front() {
                Some(Next::End(end)) => return Ok(Next::End(end.clone())),
                Some(Next::Event(_)) => {
                    let next = self.waiting.pop_front().expect("the front was looked at");
                    return Ok(next);
                }
                None => {}
            }
            let mut open = match self.open.take() {
                Some(open) => open,
                None => match self.connect().await? {
                    Some(open) => open,
                    None => continue,
                },
            };
            // Whatever cuts the stream, the next one begins behind the last event that was handed out.
            let Ok(Some(Ok(bytes))) = tokio::time::timeout(SILENCE, open.bytes.next()).await else {
                continue;
            };
            let Ok(frames) = open.reader.take(&bytes) else { continue };
            for frame in frames {
                self.take(&frame)?;
            }
            self.open = Some(open);
        }
    }

    async fn connect(&mut self) -> Result<Option<Open>, ClientError> {
        let path = format!("api/v1/runs/{}/events", self.run);
        let call = self.client.http.get(self.client.url(&path)?);
        let call = call.header("accept", MEDIA_TYPE).header("last-event-id", self.after.to_string());
        match self.client.send(call).await {
            Ok(answer) => {
                let bytes = answer.bytes_stream().boxed();
                Ok(Some(Open { bytes, reader: Reader::default() }))
            }
            Err(error) if self.failures < MOST_FAILURES && may_pass(&error) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
                self.failures += 1;
                tokio::time::sleep(pause).await;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, frame: &Frame) -> Result<(), ClientError> {
        self.failures = 0;
        let unexpected = |error: serde_json::Error| ClientError::Unexpected {
            url: self.client.base.to_string(),
            status: 200,
            reason: error.to_string(),
        };
        if frame.event.as_deref() == Some(END) {
            let end = serde_json::from_str(&frame.data).map_err(unexpected)?;
            self.waiting.push_back(Next::End(end));
            return Ok(());
        }
        let event: Event = serde_json::from_str(&frame.data).map_err(unexpected)?;
        if event.seq > self.after {
            self.after = event.seq;
            self.waiting.push_back(Next::Event(event));
        }
        Ok(())
    }
}

/// Whether the same call may be answered a little later.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } => true,
        ClientError::Refused { status, .. } | ClientError::Unexpected { status, .. } => {
            matches!(status, 408 | 429 | 500..=599)
        }
        ClientError::Address(_) | ClientError::Key | ClientError::Setup(_) => false,
    }
}
