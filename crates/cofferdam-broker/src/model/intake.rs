//! The agent's request as it comes in, with a bound on what all of an attempt's requests hold at a time.

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::decode::too_large;
use super::refusal::Refusal;
use crate::options::Bounds;

/// A request up to this size is read without asking. Few are larger.
const SMALL: usize = 1 << 20;
/// Larger ones are read, checked and forwarded this many at a time, so that a flood of them holds a known
/// amount of the host's memory.
const LARGE_AT_A_TIME: usize = 4;

/// Reads requests.
pub(crate) struct Intake {
    bounds: Bounds,
    large: Semaphore,
}

/// A request's body, with the place it takes.
pub(crate) struct Taken<'i> {
    pub bytes: Bytes,
    pub place: Option<SemaphorePermit<'i>>,
}

impl Intake {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, large: Semaphore::new(LARGE_AT_A_TIME) }
    }

    /// Reads a body to its end.
    pub(crate) async fn read(&self, mut body: Incoming) -> Result<Taken<'_>, Refusal> {
        let limit = self.bounds.body_bytes;
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large(limit));
        }
        let mut place = None;
        let mut bytes = BytesMut::new();
        while let Some(frame) = timeout(self.bounds.idle_time, body.frame()).await.map_err(|_| slow())? {
            let Ok(data) = frame.map_err(|_| cut())?.into_data() else { continue };
            if bytes.len() + data.len() > limit {
                return Err(too_large(limit));
            }
            if place.is_none() && bytes.len() + data.len() > SMALL {
                let wait = timeout(self.bounds.idle_time, self.large.acquire());
                place = wait.await.map_err(|_| slow())?.ok();
            }
            if bytes.is_empty() {
                // The usual request of known length is read into one buffer.
                bytes.reserve((data.len() as u64 + body.size_hint().lower()).min(SMALL as u64) as usize);
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Taken { bytes: bytes.freeze(), place })
    }
}

fn slow() -> Refusal {
    Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the request did not arrive in time")
}

fn cut() -> Refusal {
    Refusal::bad_request("cut", "the request ended before its end")
}
