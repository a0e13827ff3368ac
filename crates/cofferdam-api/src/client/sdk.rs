//! Questions to a model: asking, and hearing the answer while it is made.

use cofferdam_core::{AskInput, Delta, RunId};
use serde_json::Value;

use super::stream::{After, FrameStream};
use super::{Client, ClientError, read};
use crate::error::ErrorBody;
use crate::run::RunResponse;
use crate::sdk::{SdkResponse, frames};
use crate::sse::Frame;

/// An answer while it is made.
pub struct SdkStream {
    frames: FrameStream,
}

/// What comes next of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum SdkNext {
    /// A piece of a block. Some may be missing: the whole block follows.
    Delta(Delta),
    /// A whole block, or what a call of the model used, by the kind of its frame.
    Whole {
        /// The kind of the frame.
        kind: String,
        /// What it says.
        data: Value,
    },
    /// The answer, which is the last of it.
    Result(Box<SdkResponse>),
}

impl Client {
    /// `POST /execute/sdk`, which answers as soon as the question is on record.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn ask(&self, question: &AskInput) -> Result<RunResponse, ClientError> {
        let call = self.http.post(self.url("execute/sdk")?).json(question).timeout(super::ANSWER);
        read(self.send(call.header("prefer", "respond-async")).await?).await
    }

    /// `POST /execute/sdk`. Waits for the answer, however long that takes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn execute_sdk(&self, question: &AskInput) -> Result<SdkResponse, ClientError> {
        read(self.send(self.http.post(self.url("execute/sdk")?).json(question)).await?).await
    }

    /// `GET /execute/sdk/{id}` as a stream, from its beginning.
    #[must_use]
    pub fn answer(&self, run: &RunId) -> SdkStream {
        SdkStream { frames: FrameStream::new(self, format!("execute/sdk/{run}"), After::Number(0)) }
    }
}

impl SdkStream {
    /// What comes next. After the result nothing does.
    ///
    /// # Errors
    /// [`ClientError`] if the service refuses, has no answer, or has been unreachable or not understood for a while.
    pub async fn next(&mut self) -> Result<SdkNext, ClientError> {
        loop {
            let frame = self.frames.next().await?;
            match of(&frame) {
                Ok(Told::Failed(body)) => {
                    return Err(ClientError::Refused { status: body.error_code.status(), body });
                }
                Ok(Told::Next(next)) => {
                    if let Some(id) = frame.id {
                        self.frames.understood(id);
                    }
                    return Ok(next);
                }
                Ok(Told::Nothing) => {}
                Err(error) => self.frames.refuse(error.to_string()).await?,
            }
        }
    }
}

enum Told {
    Next(SdkNext),
    Failed(Box<ErrorBody>),
    Nothing,
}

fn of(frame: &Frame) -> Result<Told, serde_json::Error> {
    let data = &frame.data;
    match frame.event.as_deref().unwrap_or_default() {
        frames::START => Ok(Told::Nothing),
        frames::TEXT_DELTA | frames::THINKING_DELTA => {
            Ok(Told::Next(SdkNext::Delta(serde_json::from_str(data)?)))
        }
        frames::RESULT => Ok(Told::Next(SdkNext::Result(serde_json::from_str(data)?))),
        frames::ERROR => Ok(Told::Failed(serde_json::from_str(data)?)),
        kind => Ok(Told::Next(SdkNext::Whole { kind: kind.to_owned(), data: serde_json::from_str(data)? })),
    }
}
