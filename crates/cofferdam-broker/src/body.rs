//! The body of every answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
pub(crate) use cofferdam_net::{Body, BodyError, full};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};

/// Bytes that were read already, and the rest of the body that they came from.
pub(crate) fn prefixed(read: Bytes, rest: Incoming) -> Body {
    Prefixed { read: Some(read).filter(|read| !read.is_empty()), rest }.boxed()
}

struct Prefixed {
    read: Option<Bytes>,
    rest: Incoming,
}

impl hyper::body::Body for Prefixed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.read.take() {
            Some(read) => Poll::Ready(Some(Ok(Frame::data(read)))),
            None => Pin::new(&mut self.rest).poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_none() && self.rest.is_end_stream()
    }

    /// What is left of the rest counts from where it stands, so both together are the whole.
    fn size_hint(&self) -> SizeHint {
        let read = self.read.as_ref().map_or(0, |read| read.len() as u64);
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + read);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + read);
        }
        hint
    }
}
