//! A run's events as they happen. A stream that is cut is taken up again where it was.

use cofferdam_core::RunId;

use super::stream::{After, FrameStream};
use super::{Client, ClientError};
use crate::event::{EventResponse, RunEnd};
use crate::sse::{END, Frame};

/// A run's events, in order and each once.
pub struct EventStream {
    frames: FrameStream,
    end: Option<RunEnd>,
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
        let frames = FrameStream::new(self, format!("api/v1/runs/{run}/events"), After::Number(after));
        EventStream { frames, end: None }
    }
}

impl EventStream {
    /// The next event, or the run's end. After the end, the end again.
    ///
    /// # Errors
    /// [`ClientError`] if the service refuses, or has been unreachable or not understood for a while.
    pub async fn next(&mut self) -> Result<Next, ClientError> {
        loop {
            if let Some(end) = &self.end {
                return Ok(Next::End(end.clone()));
            }
            let frame = self.frames.next().await?;
            match of(&frame) {
                Ok(Next::End(end)) => self.end = Some(end),
                Ok(Next::Event(event)) => {
                    self.frames.understood(event.seq);
                    return Ok(Next::Event(event));
                }
                Err(error) => self.frames.refuse(error.to_string()).await?,
            }
        }
    }
}

fn of(frame: &Frame) -> Result<Next, serde_json::Error> {
    match frame.event.as_deref() == Some(END) {
        true => serde_json::from_str(&frame.data).map(Next::End),
        false => serde_json::from_str(&frame.data).map(Next::Event),
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
