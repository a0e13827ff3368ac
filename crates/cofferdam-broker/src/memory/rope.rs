//! A request in segments.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::quota::Room;
use super::segment::{SEGMENT, Segment};
use crate::body::BodyError;

/// Bytes in segments, of which all but the last are full.
#[derive(Default)]
pub(crate) struct Rope {
    segments: VecDeque<Segment>,
    len: usize,
}

/// The room that was set aside is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Rope {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds bytes at the end.
    pub(crate) fn push(&mut self, mut bytes: &[u8], room: &mut Room) -> Result<(), Full> {
        while !bytes.is_empty() {
            let taken = self.segments.back_mut().map_or(0, |last| last.fill(bytes));
            self.len += taken;
            bytes = &bytes[taken..];
            if !bytes.is_empty() {
                self.segments.push_back(room.take().ok_or(Full)?);
            }
        }
        Ok(())
    }

    /// Takes bytes off the end. Only before anything was taken off the front.
    pub(crate) fn truncate(&mut self, len: usize, room: &mut Room) {
        while self.segments.len() > len.div_ceil(SEGMENT) {
            if let Some(last) = self.segments.pop_back() {
                room.reuse(last);
            }
        }
        let before_the_last = self.segments.len().saturating_sub(1) * SEGMENT;
        if let Some(last) = self.segments.back_mut() {
            last.truncate(len - before_the_last);
        }
        self.len = self.len.min(len);
    }

    /// Takes the first segment off.
    pub(crate) fn pop_front(&mut self) -> Option<Segment> {
        let first = self.segments.pop_front()?;
        self.len -= first.len();
        Some(first)
    }

    /// The segments, in order.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.segments.iter().map(AsRef::as_ref)
    }

    /// A body that gives each segment back when it is sent.
    pub(crate) fn into_body(self, end: Vec<u8>) -> Sending {
        Sending { rope: self, end: Bytes::from(end) }
    }
}

/// A request on its way: each segment is free again once it is sent.
pub(crate) struct Sending {
    rope: Rope,
    end: Bytes,
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let next = match self.rope.pop_front() {
            Some(segment) => Some(Bytes::from_owner(segment)),
            None => Some(std::mem::take(&mut self.end)).filter(|end| !end.is_empty()),
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.rope.len == 0 && self.end.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.rope.len + self.end.len()) as u64)
    }
}
