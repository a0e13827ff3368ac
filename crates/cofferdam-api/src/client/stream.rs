//! Frames of a stream as they happen. A stream that is cut is taken up again where it was.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_core::with_causes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::time::Instant;

use super::{Client, ClientError};
use crate::sse::{Frame, MEDIA_TYPE, Reader};

/// The service sends a heartbeat every 15 seconds: a stream that is silent for longer is dead.
pub(super) const SILENCE: Duration = Duration::from_secs(45);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often in a row the service may be unreachable, or not be understood, before that is said.
pub(super) const MOST_FAILURES: u32 = 20;

/// The frames of one stream, in order, of those with a number each once.
pub(super) struct FrameStream {
    client: Client,
    path: String,
    after: After,
    open: Option<Open>,
    waiting: VecDeque<Frame>,
    failures: u32,
}

/// Where a stream goes on: behind the last frame that was understood.
pub(super) enum After {
    /// This number.
    Number(u64),
    /// This place, in the service's own words; from the beginning without one.
    Place(Option<String>),
}

struct Open {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    reader: Reader,
    since: Instant,
}

impl FrameStream {
    /// The stream at this path, from the frame after this one.
    pub(super) fn new(client: &Client, path: String, after: After) -> Self {
        Self { client: client.clone(), path, after, open: None, waiting: VecDeque::new(), failures: 0 }
    }

    /// The next frame. Whoever has understood it says so ([`Self::understood`]), and whoever has not refuses it.
    pub(super) async fn next(&mut self) -> Result<Frame, ClientError> {
        loop {
            while let Some(frame) = self.waiting.pop_front() {
                if !self.is_seen(&frame) {
                    return Ok(frame);
                }
            }
            let opened = match self.open.take() {
                Some(open) => Ok(open),
                None => self.connect().await,
            };
            let read = match opened {
                Ok(open) => self.read(open).await,
                Err(error) => Err(error),
            };
            // Whatever cuts the stream, the next one begins behind the last frame that was understood.
            if let Err(error) = read {
                self.pause_after(error).await?;
            }
        }
    }

    /// A frame with this number was understood: the next stream begins behind it.
    pub(super) fn understood(&mut self, id: u64) {
        if let After::Number(after) = &mut self.after {
            *after = id.max(*after);
        }
        self.failures = 0;
    }

    /// A frame at this place was understood: the next stream begins behind it.
    pub(super) fn understood_at(&mut self, place: String) {
        self.after = After::Place(Some(place));
        self.failures = 0;
    }

    fn is_seen(&self, frame: &Frame) -> bool {
        match (&self.after, frame.id) {
            (After::Number(after), Some(id)) => id <= *after,
            (After::Number(_), None) | (After::Place(_), _) => false,
        }
    }

    /// A frame was not understood. It may have been damaged on its way: the stream begins anew, or it was too often.
    pub(super) async fn refuse(&mut self, reason: String) -> Result<(), ClientError> {
        self.open = None;
        self.waiting.clear();
        let error = self.unreadable(reason);
        self.pause_after(error).await
    }

    async fn connect(&mut self) -> Result<Open, ClientError> {
        let call = self.client.http.get(self.client.url(&self.path)?);
        let call = call.header("accept", MEDIA_TYPE);
        let call = match &self.after {
            After::Number(after) => call.header("last-event-id", after.to_string()),
            After::Place(Some(place)) => call.header("last-event-id", place),
            After::Place(None) => call,
        };
        let bytes = self.client.send(call).await?.bytes_stream().boxed();
        Ok(Open { bytes, reader: Reader::default(), since: Instant::now() })
    }

    /// Takes what comes next, and keeps the stream open if it could be read.
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
        self.waiting.extend(frames);
        self.open = Some(open);
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
