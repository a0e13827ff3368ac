//! A spec's events as they happen, run after run. A stream that is cut is taken up again where it was.

use cofferdam_core::SpecId;

use super::stream::{After, FrameStream};
use super::{Client, ClientError};
use crate::spec::{SpecEnd, SpecEventResponse};
use crate::sse::{END, Frame};

/// A spec's events, in order and each once.
pub struct SpecEventStream {
    frames: FrameStream,
    end: Option<SpecEnd>,
}

/// What comes next on a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum SpecNext {
    /// An event, also one of a kind that this program does not know: a service may be newer.
    Event(SpecEventResponse),
    /// No run of the spec is under way any more, and this was all.
    End(SpecEnd),
}

impl Client {
    /// `GET /api/v1/specs/{id}/events` as a stream, from the event after this place.
    #[must_use]
    pub fn stream_spec(&self, id: &SpecId, after: Option<String>) -> SpecEventStream {
        let frames = FrameStream::new(self, format!("api/v1/specs/{id}/events"), After::Place(after));
        SpecEventStream { frames, end: None }
    }
}

impl SpecEventStream {
    /// The next event, or the end. After the end, the end again.
    ///
    /// # Errors
    /// [`ClientError`] if the service refuses, or has been unreachable or not understood for a while.
    pub async fn next(&mut self) -> Result<SpecNext, ClientError> {
        loop {
            if let Some(end) = &self.end {
                return Ok(SpecNext::End(end.clone()));
            }
            let frame = self.frames.next().await?;
            match of(&frame) {
                Ok(SpecNext::End(end)) => self.end = Some(end),
                Ok(SpecNext::Event(event)) => {
                    self.frames.understood_at(event.position());
                    return Ok(SpecNext::Event(event));
                }
                Err(error) => self.frames.refuse(error.to_string()).await?,
            }
        }
    }
}

fn of(frame: &Frame) -> Result<SpecNext, serde_json::Error> {
    match frame.event.as_deref() == Some(END) {
        true => serde_json::from_str(&frame.data).map(SpecNext::End),
        false => serde_json::from_str(&frame.data).map(SpecNext::Event),
    }
}
