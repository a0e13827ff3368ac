//! A stream that fails when nothing moves in either direction for too long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream with an idle limit. A tunnel has one around the client's end: all that moves passes there.
pub(crate) struct Watched<S> {
    inner: S,
    idle_time: Duration,
    last: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl<S> Watched<S> {
    /// Watches a stream.
    pub(crate) fn new(inner: S, idle_time: Duration) -> Self {
        Self { inner, idle_time, last: Instant::now(), alarm: Box::pin(sleep(idle_time)) }
    }

    /// What waiting has come to: an error once nothing has moved for too long. The alarm is set anew when it
    /// goes off and not at every byte, which would cost a lock each time.
    fn still_waiting<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            let due = self.last + self.idle_time;
            if due <= Instant::now() {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the connection was silent",
                )));
            }
            self.alarm.as_mut().reset(due);
        }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match outcome {
            Poll::Pending => self.still_waiting(cx),
            Poll::Ready(done) => {
                self.last = Instant::now();
                Poll::Ready(done)
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.watch(cx, outcome)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.watch(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.watch(cx, outcome)
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_fails_and_one_that_moves_does_not() {
        let (near, mut far) = tokio::io::duplex(64);
        let mut near = Watched::new(near, Duration::from_secs(10));
        for _ in 0..5 {
            tokio::time::advance(Duration::from_secs(9)).await;
            far.write_all(b"x").await.unwrap();
            assert_eq!(near.read_u8().await.unwrap(), b'x');
        }
        let started = Instant::now();
        let error = near.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() >= Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_fails_the_writer() {
        let (near, _far) = tokio::io::duplex(8);
        let mut near = Watched::new(near, Duration::from_secs(10));
        let error = near.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
