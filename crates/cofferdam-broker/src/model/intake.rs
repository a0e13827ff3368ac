//! The agent's request as it comes in: read into room that was set aside for it, checked, and rebuilt in the same room.

use std::sync::Arc;

use http::request::Parts;
use http::{Method, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::decode::{self, Encoding, too_large};
use super::json::{Out, Source};
use super::refusal::Refusal;
use super::request::{self, Read, Rebuilt, Rules};
use super::route::Endpoint;
use crate::memory::{COMPRESSED, NoRoom, Quota, Room, Rope, Share, Turn};
use crate::options::Bounds;

/// Larger requests are checked on a thread that may block: the others share theirs with every stream.
const CHECKED_AT_ONCE: usize = 256 << 10;

/// Reads requests.
pub(crate) struct Intake {
    bounds: Bounds,
    share: Share,
    rules: Arc<Rules>,
}

/// A body as it arrived, with what is left of the room for it.
struct Arrived {
    rope: Rope,
    room: Room,
}

impl Intake {
    pub(crate) fn new(bounds: Bounds, share: Share, rules: Arc<Rules>) -> Self {
        Self { bounds, share, rules }
    }

    /// What the answers of this attempt may hold, and its requests do.
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    /// Reads a request to its end, and rebuilds it.
    pub(crate) async fn take(
        &self,
        endpoint: Endpoint,
        head: &Parts,
        body: Incoming,
    ) -> Result<Rebuilt, Refusal> {
        let mut rebuilt = request::begin(endpoint, &head.uri, &head.headers, &self.rules);
        if endpoint.method() != Method::POST {
            return Ok(rebuilt);
        }
        match decode::encoding(&head.headers)? {
            None => {
                let arrived = self.read(body, &self.share.requests, self.bounds.body_bytes).await?;
                let is_small = arrived.rope.len() <= CHECKED_AT_ONCE;
                let rules = Arc::clone(&self.rules);
                let check = move || {
                    let Arrived { rope, room } = arrived;
                    let read = request::read(&mut rebuilt, Source::arrived(rope), Out::into(room), &rules)?;
                    rebuilt.payload = Some(read.into_payload());
                    Ok(rebuilt)
                };
                if is_small { check() } else { aside(self.turn().await?, check).await }
            }
            Some(encoding) => self.take_compressed(encoding, rebuilt, body).await,
        }
    }

    /// Reads a compressed request twice: to check it, and to find how large it is, which takes no memory; and then to write
    /// it, into room of that size.
    async fn take_compressed(
        &self,
        encoding: Encoding,
        mut rebuilt: Rebuilt,
        body: Incoming,
    ) -> Result<Rebuilt, Refusal> {
        let arrived = self.read(body, &self.share.compressed, COMPRESSED.min(self.bounds.body_bytes)).await?;
        let (rules, memory) = (Arc::clone(&self.rules), Arc::clone(self.share.memory()));
        let undo = move |arrived: &Arrived, rebuilt: &mut Rebuilt, out| -> Result<Read, Refusal> {
            let wire = Wire { segments: arrived.rope.segments(), rest: &[] };
            encoding.read(wire, &memory, |source| request::read(rebuilt, source, out, &rules))
        };
        let measure = move || {
            let size = undo(&arrived, &mut rebuilt, Out::nowhere())?.peak();
            Ok((undo, arrived, rebuilt, size))
        };
        let (undo, arrived, mut rebuilt, size) = aside(self.turn().await?, measure).await?;
        // Without a turn: whoever waits for room may wait for long.
        let room = self.share.requests.reserve(size).await.map_err(|NoRoom| no_room(size))?;
        let write = move || {
            let read = undo(&arrived, &mut rebuilt, Out::into(room))?;
            rebuilt.payload = Some(read.into_payload());
            Ok(rebuilt)
        };
        aside(self.turn().await?, write).await
    }

    /// Reads a body to its end, into room that was set aside before its first byte is read.
    async fn read(&self, mut body: Incoming, quota: &Quota, limit: usize) -> Result<Arrived, Refusal> {
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large(limit));
        }
        // One that does not say its length may have any.
        let size = body.size_hint().exact().map_or(limit, |size| usize::try_from(size).unwrap_or(limit));
        let mut room = quota.reserve(size).await.map_err(|NoRoom| no_room(size))?;
        let mut rope = Rope::default();
        // The attack: a body that never ends, in room that others wait for.
        let deadline = Instant::now() + self.bounds.body_time;
        loop {
            let silent = Instant::now() + self.bounds.idle_time;
            let frame = timeout_at(deadline.min(silent), body.frame()).await.map_err(|_| slow())?;
            let Some(frame) = frame else { break };
            let Ok(data) = frame.map_err(|_| cut())?.into_data() else { continue };
            if rope.len() + data.len() > limit {
                return Err(too_large(limit));
            }
            rope.push(&data, &mut room).map_err(|_| too_large(limit))?;
        }
        room.shrink(rope.len());
        Ok(Arrived { rope, room })
    }

    async fn turn(&self) -> Result<Turn, Refusal> {
        self.share.turn().await.map_err(|NoRoom| {
            let message = "the broker is busy with other requests; ask again later";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
        })
    }
}

/// Does something on a thread that may block, while it has its turn.
async fn aside<T: Send + 'static>(
    turn: Turn,
    check: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let checked = tokio::task::spawn_blocking(move || {
        let checked = check();
        drop(turn);
        checked
    });
    checked.await.map_err(|_| Refusal::bad_request("internal", "the request could not be checked"))?
}

/// A body as it arrived, to be read more than once.
struct Wire<'a, I> {
    segments: I,
    rest: &'a [u8],
}

impl<'a, I: Iterator<Item = &'a [u8]>> std::io::Read for Wire<'a, I> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.rest.is_empty() {
            self.rest = self.segments.next().unwrap_or_default();
        }
        self.rest.read(buffer)
    }
}

fn no_room(bytes: usize) -> Refusal {
    let message = format!(
        "other requests hold the memory that the broker has for them, and this one needs {} KiB of it; ask again later",
        bytes.div_ceil(1 << 10)
    );
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "memory", message)
}

fn slow() -> Refusal {
    Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the request did not arrive in time")
}

fn cut() -> Refusal {
    Refusal::bad_request("cut", "the request ended before its end")
}
