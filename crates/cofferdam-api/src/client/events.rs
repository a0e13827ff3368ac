//! A run's events as they happen. A stream that is cut is taken up again where it was.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_core::{RunId, with_causes};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::time::Instant;

use super::{Client, ClientError};
use crate::event::{EventResponse, RunEnd};
use crate::sse::{END, Frame, MEDIA_TYPE, Reader};

/// The service sends a heartbeat every 15 seconds: a stream that is silent for longer is dead.
pub(super) const SILENCE: Duration = Duration::from_secs(45);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often in a row the service may be unreachable, or not be understood, before that is said.
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
    since: Instant,
}

/// What comes next on a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// An event, also one of a kind that this program does not know: a service may be newer.
    Event(EventResponse),
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
    /// [`ClientError`] if the service refuses, or has been unreachable or not understood for a while.
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
            let opened = match self.open.take() {
                Some(open) => Ok(open),
                None => self.connect().await,
            };
            let read = match opened {
                Ok(open) => self.read(open).await,
                Err(error) => Err(error),
            };
            // Whatever cuts the stream, the next one begins behind the last event that was handed out.
            if let Err(error) = read {
                self.pause_after(error).await?;
            }
        }
    }

    async fn connect(&mut self) -> Result<Open, ClientError> {
        let path = format!("api/v1/runs/{}/events", self.run);
        let call = self.client.http.get(self.client.url(&path)?);
        let call = call.header("accept", MEDIA_TYPE).header("last-event-id", self.after.to_string());
        let bytes = self.client.send(call).await?.bytes_stream().boxed();
        Ok(Open { bytes, reader: Reader::default(), since: Instant::now() })
    }

    /// Takes what comes next, and keeps the stream open if all of it was understood.
    async fn read(&mut self, mut open: Open) -> Result<(), ClientError> {
        let bytes = match tokio::time::timeout(SILENCE, open.bytes.next()).await {
            Ok(Some(Ok(bytes))) => bytes,
            Ok(Some(Err(error))) => return Err(self.cut(&open, with_causes(&error.without_url()))),
            Ok(None) => return Err(self.cut(&open, "the stream of events ended before the run".to_owned())),
            Err(_) => {
                let silent = format!("the stream of events was silent for {} seconds", SILENCE.as_secs());
                return Err(self.cut(&open, silent));
            }
        };
        let frames = open.reader.take(&bytes).map_err(|error| self.unreadable(error.to_string()))?;
        for frame in frames {
            self.take(&frame)?;
        }
        self.open = Some(open);
        Ok(())
    }

    fn take(&mut self, frame: &Frame) -> Result<(), ClientError> {
        if frame.event.as_deref() == Some(END) {
            let end = serde_json::from_str(&frame.data);
            self.waiting.push_back(Next::End(end.map_err(|error| self.unreadable(error.to_string()))?));
            return Ok(());
        }
        let event = serde_json::from_str(&frame.data);
        let event: EventResponse = event.map_err(|error| self.unreadable(error.to_string()))?;
        if event.seq > self.after {
            self.after = event.seq;
            self.failures = 0;
            self.waiting.push_back(Next::Event(event));
        }
        Ok(())
    }

    /// A stream that was open for a while is no failure: a run may be silent for longer than a proxy waits.
    fn cut(&mut self, open: &Open, reason: String) -> ClientError {
        if open.since.elapsed() >= LONGEST_PAUSE {
            self.failures = 0;
        }
        ClientError::Unreachable { url: self.client.base.to_string(), reason }
    }

    fn unreadable(&self, reason: String) -> ClientError {
        ClientError::Unexpected { url: self.client.base.to_string(), status: 200, reason }
    }

    /// Waits before the next try, longer each time. The error comes back if it does not pass, or came too often.
    async fn pause_after(&mut self, error: ClientError) -> Result<(), ClientError> {
        if self.failures >= MOST_FAILURES || !may_pass(&error) {
            return Err(error);
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures += 1;
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

/// Whether the same call may be answered a little later.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } => true,
        ClientError::Refused { status, .. } | ClientError::Unexpected { status, .. } => {
            // What was accepted and then not understood may have been damaged on its way.
            matches!(status, 200..=299 | 408 | 429 | 500..=599)
        }
        ClientError::Address(_) | ClientError::Key | ClientError::Setup(_) => false,
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
