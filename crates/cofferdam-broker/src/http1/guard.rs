//! A stream that lets a request's head through only after it was checked.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::head::{Framing, HeadFault, check, end};

/// Bytes read at a time while a head arrives.
const CHUNK: usize = 4096;

/// A stream whose reader sees checked heads only. A bad head is an error for the reader, and is kept: hyper
/// takes an error before the first byte of a head for the connection's end.
///
/// After a chunked body, or a CONNECT, it looks no further: such a connection serves no second request (see
/// `Served::handle`).
pub(crate) struct HeadGuard<S> {
    inner: S,
    head_bytes: usize,
    head_time: Duration,
    phase: Phase,
    /// Read, and not looked at yet.
    unchecked: BytesMut,
    /// Checked, and not handed out yet.
    checked: BytesMut,
    /// Set while a head has begun and is not whole.
    alarm: Option<Pin<Box<Sleep>>>,
    fault: Option<HeadFault>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Head,
    Body { left: u64 },
    Rest,
}

impl<S> HeadGuard<S> {
    pub(crate) fn new(inner: S, head_bytes: usize, head_time: Duration) -> Self {
        Self {
            inner,
            head_bytes,
            head_time,
            phase: Phase::Head,
            unchecked: BytesMut::new(),
            checked: BytesMut::new(),
            alarm: None,
            fault: None,
        }
    }

    /// What was wrong with the last head.
    pub(super) fn fault(&self) -> Option<HeadFault> {
        self.fault
    }

    /// The stream behind, for whoever has given up on its requests.
    pub(super) fn into_inner(self) -> S {
        self.inner
    }

    /// Moves what may be read from `unchecked` to `checked`.
    fn advance(&mut self) -> Result<(), HeadFault> {
        while !self.unchecked.is_empty() {
            match self.phase {
                Phase::Head => {
                    let Some(end) = end(&self.unchecked)? else {
                        return if self.unchecked.len() > self.head_bytes {
                            Err(HeadFault::TooLarge)
                        } else {
                            Ok(())
                        };
                    };
                    if end > self.head_bytes {
                        return Err(HeadFault::TooLarge);
                    }
                    self.alarm = None;
                    let head = self.unchecked.split_to(end);
                    self.phase = match check(&head)? {
                        Framing::Length(0) => Phase::Head,
                        Framing::Length(left) => Phase::Body { left },
                        Framing::Rest => Phase::Rest,
                    };
                    self.checked.unsplit(head);
                }
                Phase::Body { left } => {
                    let now = usize::try_from(left).unwrap_or(usize::MAX).min(self.unchecked.len());
                    let body = self.unchecked.split_to(now);
                    self.checked.unsplit(body);
                    self.passed(now);
                }
                Phase::Rest => {
                    let rest = self.unchecked.split();
                    self.checked.unsplit(rest);
                }
            }
        }
        Ok(())
    }

    fn passed(&mut self, bytes: usize) {
        if let Phase::Body { left } = self.phase {
            let left = left - bytes as u64;
            self.phase = if left == 0 { Phase::Head } else { Phase::Body { left } };
        }
    }
}

impl<S: AsyncRead + Unpin> HeadGuard<S> {
    /// Reads more of a head. `Ok(0)` is the end of the stream.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if !self.unchecked.is_empty() {
            let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(self.head_time)));
            if alarm.as_mut().poll(cx).is_ready() {
                self.fault = Some(HeadFault::TooSlow);
                return Poll::Ready(Err(refused(HeadFault::TooSlow)));
            }
        }
        let mut chunk = [0; CHUNK];
        let mut chunk = ReadBuf::new(&mut chunk);
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut chunk))?;
        self.unchecked.extend_from_slice(chunk.filled());
        self.fault = self.advance().err();
        Poll::Ready(Ok(chunk.filled().len()))
    }

    /// Reads a body straight into the reader's buffer. What lies beyond its end is the next head's.
    fn poll_body(&mut self, cx: &mut Context<'_>, left: u64, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        let body = usize::try_from(left).unwrap_or(usize::MAX).min(read);
        self.unchecked.extend_from_slice(&buf.filled()[before + body..]);
        buf.set_filled(before + body);
        self.passed(body);
        self.fault = self.advance().err();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadGuard<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.checked.is_empty() {
                let now = this.checked.len().min(buf.remaining());
                buf.put_slice(&this.checked[..now]);
                this.checked.advance(now);
                return Poll::Ready(Ok(()));
            }
            // Only now: what came before the fault is the reader's, and an error comes without bytes.
            if let Some(fault) = this.fault {
                return Poll::Ready(Err(refused(fault)));
            }
            match this.phase {
                Phase::Head => {
                    if ready!(this.poll_head(cx))? == 0 {
                        return Poll::Ready(Ok(()));
                    }
                }
                Phase::Body { left } => return this.poll_body(cx, left, buf),
                Phase::Rest => return Pin::new(&mut this.inner).poll_read(cx, buf),
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadGuard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

fn refused(fault: HeadFault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
