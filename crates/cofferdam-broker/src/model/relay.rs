//! An answer on its way to the agent: each piece is passed on as it comes, and nothing is kept but the meter's
//! reading. The agent's connection asks for the next piece when it has sent the one before, so a slow reader
//! costs one piece.
//!
//! A model's server sends an answer as many small pieces. Each that is passed on alone costs a system call here
//! and one at every reader behind. So pieces that have arrived already are passed on together ([`Gathered`]).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
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
    gathered: Gathered,
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

impl Metered {
    /// Reads along. What the answer says it has used counts before the agent can act on it.
    fn feed(&mut self, bytes: &[u8]) {
        self.meter.feed(bytes);
        if let (Settlement::Call(call), Some(usage)) = (&mut self.settlement, &self.meter.reading().usage) {
            call.uses(usage);
        }
    }
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
        Self {
            inner,
            status,
            clock: Clock::new(bounds),
            mask,
            gathered: Gathered::default(),
            stage: Stage::Passing(Box::new(metered)),
        }
    }

    fn end_whole(&mut self) {
        self.end(StreamEnd::Whole, None);
        self.gathered.add(&self.mask.rest(), Duration::ZERO);
    }

    fn end(&mut self, end: StreamEnd, error: Option<BodyError>) {
        let Stage::Passing(metered) = std::mem::replace(&mut self.stage, Stage::Over) else { return };
        let Metered { mut meter, settlement } = *metered;
        match end {
            StreamEnd::Whole => meter.end(),
            // Half an event is what breaking off looks like, and not an answer that cannot be read.
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
                        metered.feed(&bytes);
                        this.gathered.add(&this.mask.feed(bytes), this.clock.progress());
                        if this.inner.is_end_stream() {
                            // An agent that has the last byte of an answer of known length asks again at once.
                            this.end_whole();
                        }
                        if this.gathered.is_full() {
                            return Poll::Ready(this.gathered.take().map(Ok));
                        }
                    }
                    Poll::Ready(Some(Err(error))) => {
                        let why = "the connection to the model's server broke";
                        this.end(StreamEnd::Cut(format!("{why} ({error})")), Some(why.into()));
                    }
                    Poll::Ready(None) => this.end_whole(),
                    Poll::Pending => {
                        if !this.gathered.is_empty() {
                            ready!(this.gathered.poll_wait(cx));
                            return Poll::Ready(this.gathered.take().map(Ok));
                        }
                        let why = ready!(this.clock.poll_expired(cx));
                        this.end(StreamEnd::Cut(why.to_owned()), Some(why.into()));
                    }
                },
                // What has come is the agent's, also if no more does.
                Stage::Ending(..) | Stage::Over if !this.gathered.is_empty() => {
                    return Poll::Ready(this.gathered.take().map(Ok));
                }
                // The agent has its whole answer. What is set aside stays so until the books are written, so nothing
                // can be spent twice meanwhile, and whoever closes the attempt waits for them.
                Stage::Ending(_, None) => {
                    this.stage = Stage::Over;
                    return Poll::Ready(None);
                }
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
            Stage::Passing(_) => self.gathered.hint(&self.inner.size_hint(), self.mask.held()),
            Stage::Ending(..) | Stage::Over => SizeHint::with_exact(self.gathered.bytes.len() as u64),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // An answer of known length is dropped when its last byte is sent, without asking for its end.
        let sent = self.inner.is_end_stream() && self.gathered.is_empty() && self.mask.held() == 0;
        let end = if sent { StreamEnd::Whole } else { StreamEnd::Left };
        self.end(end, None);
    }
}

/// Pieces that are passed on together.
#[derive(Default)]
struct Gathered {
    bytes: BytesMut,
    /// Whether the last piece came right after the one before it.
    quick: bool,
    /// One round of all other tasks, among them the one that reads from the server.
    round: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

/// No more than this is held back.
const TOGETHER: usize = 32 << 10;
/// Pieces that follow each other this quickly are worth a round. One that comes by itself is passed on at once:
/// somebody may be reading it.
const QUICK: Duration = Duration::from_micros(500);

impl Gathered {
    fn add(&mut self, bytes: &[u8], since_the_last: Duration) {
        self.quick = since_the_last < QUICK;
        self.bytes.extend_from_slice(bytes);
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= TOGETHER
    }

    /// Waits until whatever has arrived could be added.
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.quick {
            return Poll::Ready(());
        }
        let round = self.round.get_or_insert_with(|| Box::pin(tokio::task::yield_now()));
        ready!(round.as_mut().poll(cx));
        self.round = None;
        Poll::Ready(())
    }

    fn take(&mut self) -> Option<Frame<Bytes>> {
        self.round = None;
        (!self.bytes.is_empty()).then(|| Frame::data(self.bytes.split().freeze()))
    }

    /// The size of all that is still to come: what is gathered, what the mask holds, and the rest.
    fn hint(&self, rest: &SizeHint, masked: u64) -> SizeHint {
        let held = self.bytes.len() as u64 + masked;
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + held);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + held);
        }
        hint
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

    /// The alarm is not moved for each piece: it is asked again when it rings. Gives the time since the piece
    /// before.
    fn progress(&mut self) -> Duration {
        let now = Instant::now();
        let since = now - self.last;
        self.last = now;
        since
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
