//! An answer on its way to the agent: each piece is passed on as it comes, and nothing is kept but the meter's
//! reading. The agent's connection asks for the next piece when it has sent the one before, so a slow reader
//! costs one piece.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use cofferdam_core::EventType;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep_until};

use super::call::{Books, Call, Ending, Label, StreamEnd, error_event, trouble_of};
use super::mask::Mask;
use super::meter::Meter;
use crate::body::BodyError;
use crate::options::Bounds;

/// An answer that is being passed on.
pub(crate) struct Relay {
    inner: Incoming,
    status: u16,
    clock: Clock,
    mask: Mask,
    stage: Stage,
}

enum Stage {
    Passing(Box<Metered>),
    /// What was read is being written down; then the agent gets the end, or the error.
    Ending(JoinHandle<()>, Option<BodyError>),
    Over,
}

/// Who reads along, and who is told how the answer ended.
pub(crate) struct Metered {
    pub meter: Meter,
    pub settlement: Settlement,
}

/// Who is told how the answer ended.
pub(crate) enum Settlement {
    /// A call that generates.
    Call(Call),
    /// One that costs nothing: only its trouble is an event.
    Free(Arc<Books>, Label),
}

impl Relay {
    pub(crate) fn new(inner: Incoming, status: u16, bounds: &Bounds, mask: Mask, metered: Metered) -> Self {
        Self { inner, status, clock: Clock::new(bounds), mask, stage: Stage::Passing(Box::new(metered)) }
    }

    fn end(&mut self, end: StreamEnd, error: Option<BodyError>) {
        let Stage::Passing(metered) = std::mem::replace(&mut self.stage, Stage::Over) else { return };
        let Metered { mut meter, settlement } = *metered;
        match end {
            StreamEnd::Whole => meter.end(),
            // Half an event is what breaking off looks like, and not an answer that cannot be read: that would be
            // charged as the longest answer there can be.
            StreamEnd::Cut(_) | StreamEnd::Left => {}
        }
        let (status, reading) = (self.status, meter.into_reading());
        let written = match settlement {
            Settlement::Call(call) => call.end(Ending::Answered { status, reading, end }),
            Settlement::Free(books, label) => tokio::spawn(async move {
                if let Some(trouble) = trouble_of(status, &reading, &end) {
                    books.record(EventType::ModelError, error_event(&trouble, &label, None)).await;
                }
            }),
        };
        self.stage = Stage::Ending(written, error);
    }
}

impl http_body::Body for Relay {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            match &mut this.stage {
                Stage::Passing(metered) => match Pin::new(&mut this.inner).poll_frame(cx) {
                    Poll::Ready(Some(Ok(frame))) => {
                        // Trailers are headers that nobody has looked at.
                        let Ok(bytes) = frame.into_data() else { continue };
                        metered.meter.feed(&bytes);
                        this.clock.progress();
                        let bytes = this.mask.feed(bytes);
                        if bytes.is_empty() {
                            continue;
                        }
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                    Poll::Ready(Some(Err(error))) => {
                        let why = "the connection to the model's server broke";
                        this.end(StreamEnd::Cut(format!("{why} ({error})")), Some(why.into()));
                    }
                    Poll::Ready(None) => {
                        this.end(StreamEnd::Whole, None);
                        let rest = this.mask.rest();
                        if !rest.is_empty() {
                            return Poll::Ready(Some(Ok(Frame::data(rest))));
                        }
                    }
                    Poll::Pending => {
                        let why = ready!(this.clock.poll_expired(cx));
                        this.end(StreamEnd::Cut(why.to_owned()), Some(why.into()));
                    }
                },
                Stage::Ending(written, error) => {
                    // It fails only by a panic, which the task has reported.
                    let _ = ready!(Pin::new(written).poll(cx));
                    let error = error.take();
                    this.stage = Stage::Over;
                    return Poll::Ready(error.map(Err));
                }
                Stage::Over => return Poll::Ready(None),
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.stage {
            Stage::Passing(_) => {
                let (hint, held) = (self.inner.size_hint(), self.mask.held());
                hint.exact().map_or(hint, |exact| SizeHint::with_exact(exact + held))
            }
            Stage::Ending(..) | Stage::Over => SizeHint::with_exact(0),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // An answer of known length is dropped when its last byte is sent, without asking for its end.
        let end = if self.inner.is_end_stream() { StreamEnd::Whole } else { StreamEnd::Left };
        self.end(end, None);
    }
}

/// How long the vendor may be silent, and how long an answer may take in all.
struct Clock {
    last: Instant,
    idle_time: Duration,
    deadline: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Clock {
    fn new(bounds: &Bounds) -> Self {
        let now = Instant::now();
        let deadline = now + bounds.total_time;
        let alarm = Box::pin(sleep_until(deadline.min(now + bounds.idle_time)));
        Self { last: now, idle_time: bounds.idle_time, deadline, alarm }
    }

    /// The alarm is not moved for each piece: it is asked again when it rings.
    fn progress(&mut self) {
        self.last = Instant::now();
    }

    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<&'static str> {
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            let now = Instant::now();
            if now >= self.deadline {
                return Poll::Ready("the answer takes longer than the broker allows");
            }
            if now >= self.last + self.idle_time {
                return Poll::Ready("the model's server has been silent for too long");
            }
            let next = self.deadline.min(self.last + self.idle_time);
            self.alarm.as_mut().reset(next);
        }
    }
}
