//! How much an attempt may hold, and room that was set aside for one request.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::NoRoom;
use super::segment::{Buffers, SEGMENT, Segment};

/// What a request can grow by when it is rebuilt: a field that is set, one that is put at its end, and the comma
/// before either.
const GROWTH: usize = 8 << 10;

/// A number of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) struct Size(u32);

impl Size {
    /// As many as bytes of this number fill.
    pub(super) fn whole(bytes: usize) -> Self {
        Self(u32::try_from(bytes.div_ceil(SEGMENT)).unwrap_or(u32::MAX))
    }

    /// As many as a request of this size takes while it is read and rebuilt: what was read is used again for what is
    /// written, which lags behind by one segment.
    pub(super) fn of_request(bytes: usize) -> Self {
        Self(Self::whole(bytes.saturating_add(GROWTH)).0.saturating_add(1))
    }

    pub(super) fn segments(self) -> usize {
        self.0 as usize
    }
}

/// What an attempt may hold of one kind.
pub(crate) struct Quota {
    own: Arc<Semaphore>,
    own_most: Size,
    /// Of what is there for all, what one attempt may hold. Less than all of it, so that something is left.
    of_attempt: Arc<Semaphore>,
    of_all: Arc<Semaphore>,
    most: Size,
    buffers: Arc<Buffers>,
    wait: Duration,
}

/// The right to some segments.
pub(crate) struct Permits {
    own: OwnedSemaphorePermit,
    of_all: Option<OwnedSemaphorePermit>,
}

impl Permits {
    fn split(&mut self, segments: usize) -> Option<Self> {
        let own = self.own.split(segments)?;
        let of_all = match &mut self.of_all {
            Some(of_all) => Some(of_all.split(segments)?),
            None => None,
        };
        Some(Self { own, of_all })
    }
}

/// Room for one request.
pub(crate) struct Room {
    permits: Permits,
    /// Segments that were read and can be written.
    spare: Vec<Segment>,
    buffers: Arc<Buffers>,
}

impl Quota {
    pub(super) fn new(
        own: usize,
        most: usize,
        of_all: &Arc<Semaphore>,
        buffers: &Arc<Buffers>,
        wait: Duration,
    ) -> Self {
        let (own, most) = (Size::whole(own), Size::of_request(most));
        Self {
            own: Arc::new(Semaphore::new(own.segments())),
            own_most: own,
            of_attempt: Arc::new(Semaphore::new(most.segments())),
            of_all: Arc::clone(of_all),
            most,
            buffers: Arc::clone(buffers),
            wait,
        }
    }

    /// Sets room aside for a request of this size, after waiting for others if they hold it. All of it at once: whoever
    /// held a part and waited for the rest could be waited for by somebody who does the same.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<Room, NoRoom> {
        let size = Size::of_request(bytes);
        if size > self.most {
            return Err(NoRoom);
        }
        let own = async {
            let own = Arc::clone(&self.own).acquire_many_owned(size.0).await.ok()?;
            Some(Permits { own, of_all: None })
        };
        let shared = async {
            let own = Arc::clone(&self.of_attempt).acquire_many_owned(size.0).await.ok()?;
            let of_all = Arc::clone(&self.of_all).acquire_many_owned(size.0).await.ok()?;
            Some(Permits { own, of_all: Some(of_all) })
        };
        let permits = timeout(self.wait, async {
            tokio::select! {
                biased;
                permits = own, if size <= self.own_most => permits,
                permits = shared => permits,
            }
        });
        let permits = permits.await.ok().flatten().ok_or(NoRoom)?;
        Ok(self.room(permits))
    }

    /// The same without waiting.
    pub(crate) fn reserve_now(&self, bytes: usize) -> Result<Room, NoRoom> {
        let size = Size::of_request(bytes);
        let take = |semaphore: &Arc<Semaphore>| {
            Arc::clone(semaphore).try_acquire_many_owned(size.0).map_err(|_| NoRoom)
        };
        let own = take(&self.of_attempt)?;
        let of_all = Some(take(&self.of_all)?);
        Ok(self.room(Permits { own, of_all }))
    }

    fn room(&self, permits: Permits) -> Room {
        Room { permits, spare: Vec::new(), buffers: Arc::clone(&self.buffers) }
    }
}

impl Room {
    /// A segment to be filled; none if everything that was set aside is in use.
    pub(super) fn take(&mut self) -> Option<Segment> {
        let unused = self.spare.pop();
        unused.or_else(|| Some(Segment::new(&self.buffers, self.permits.split(1)?)))
    }

    /// Takes a segment back, to be filled again.
    pub(crate) fn reuse(&mut self, mut segment: Segment) {
        segment.truncate(0);
        self.spare.push(segment);
    }

    /// Gives back what a request, of which so much is in segments already, cannot need.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let used = Size::whole(bytes).segments();
        let needed = Size::of_request(bytes).segments().saturating_sub(used);
        let unused = self.permits.own.num_permits().saturating_sub(needed);
        drop(self.permits.split(unused));
    }
}
