//! The memory that requests take. There is as much of it as was said at the start, for the whole process, for each
//! attempt, and for nobody but one attempt; whoever wants more waits, and is refused after a while.
//!
//! The attack: requests that are small on the wire and large in memory, or that arrive slowly and hold what they were
//! given, from an agent that wants to end the process which serves it and others.

mod answer;
mod quota;
mod rope;
mod segment;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ruzstd::decoding::FrameDecoder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

pub(crate) use answer::AnswerRoom;
pub(crate) use quota::{Quota, Room};
pub(crate) use rope::Rope;
pub(crate) use segment::Segment;

use self::answer::AnswerQuota;
use self::quota::Size;
use self::segment::Buffers;
use crate::options::Bounds;
use crate::places::Places;

/// What all attempts together may hold of compressed requests as they arrived. What they become is held elsewhere, so
/// that a request which holds the one and waits for the other is never waited for by somebody who holds the other.
const COMPRESSED_BY_ALL: usize = 32 << 20;
/// What one attempt may hold of them: 32 MB of base64, the most that Anthropic takes, compress to 24 MB.
pub(crate) const COMPRESSED: usize = 24 << 20;
/// What is kept for each attempt alone, so that its usual requests pass whatever others hold.
const OWN: usize = 4 << 20;
const OWN_COMPRESSED: usize = 512 << 10;
/// Large or compressed requests that are read at a time. Reading one takes a processor, and up to 16 MiB for zstd's
/// window.
const HEAVY_BY_ALL: usize = 2;
const HEAVY: usize = 1;

/// The memory of a process.
pub(crate) struct Memory {
    buffers: Arc<Buffers>,
    requests: Arc<Semaphore>,
    compressed: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    connections: Arc<Semaphore>,
    /// Kept, because each has a window of some megabytes, which an allocator would not give back reliably. There are as
    /// many as can be in use at a time.
    decoders: Mutex<Vec<FrameDecoder>>,
}

/// What one attempt may use of it.
pub(crate) struct Share {
    /// For requests as they are forwarded.
    pub(crate) requests: Quota,
    /// For compressed requests as they arrive.
    pub(crate) compressed: Quota,
    answers: Arc<AnswerQuota>,
    heavy: Arc<Semaphore>,
    memory: Arc<Memory>,
    wait: Duration,
}

/// There was no room within the time that a request may wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// A turn at reading a large or compressed request.
pub(crate) struct Turn {
    _of_attempt: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Memory {
    pub(crate) fn new(bounds: &Bounds) -> Arc<Self> {
        let segments = |bytes: usize| Arc::new(Semaphore::new(Size::of_request(bytes).segments()));
        Arc::new(Self {
            buffers: Arc::default(),
            requests: segments(bounds.held_by_all.max(bounds.held_bytes)),
            compressed: segments(COMPRESSED_BY_ALL),
            answers: answer::of_all(),
            heavy: Arc::new(Semaphore::new(HEAVY_BY_ALL)),
            connections: Arc::new(Semaphore::new(bounds.connections_of_all)),
            decoders: Mutex::default(),
        })
    }

    /// The share of one more attempt.
    pub(crate) fn share(self: &Arc<Self>, bounds: &Bounds) -> Share {
        let quota =
            |own, most, all: &Arc<Semaphore>| Quota::new(own, most, all, &self.buffers, bounds.room_time);
        Share {
            requests: quota(OWN.min(bounds.held_bytes), bounds.held_bytes, &self.requests),
            compressed: quota(OWN_COMPRESSED, COMPRESSED, &self.compressed),
            answers: AnswerQuota::new(&self.answers),
            heavy: Arc::new(Semaphore::new(HEAVY)),
            memory: Arc::clone(self),
            wait: bounds.room_time,
        }
    }

    /// The places for connections of one more attempt.
    pub(crate) fn places(&self, bounds: &Bounds) -> Places {
        Places::new(bounds.connections, &self.connections)
    }

    /// A decoder for zstd.
    pub(crate) fn take_decoder(&self) -> FrameDecoder {
        self.decoders.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps a decoder for the next one.
    pub(crate) fn keep_decoder(&self, decoder: FrameDecoder) {
        let mut kept = self.decoders.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < HEAVY_BY_ALL {
            kept.push(decoder);
        }
    }
}

impl Share {
    /// Waits for a turn at reading a large or compressed request. Nobody waits for room while it has one.
    pub(crate) async fn turn(&self) -> Result<Turn, NoRoom> {
        let turn = async {
            let of_attempt = Arc::clone(&self.heavy).acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.memory.heavy).acquire_owned().await.ok()?;
            Some(Turn { _of_attempt: of_attempt, _of_all: of_all })
        };
        timeout(self.wait, turn).await.ok().flatten().ok_or(NoRoom)
    }

    /// Room for what has to be read of an answer before it is understood.
    pub(crate) fn answer(&self) -> AnswerRoom {
        AnswerRoom::new(&self.answers)
    }

    /// The memory that this is a share of.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
