//! The part of a request that is being looked at.

use std::io::Read;

use super::fault::Fault;
use super::out::Out;
use crate::memory::Rope;

/// How much is looked at at a time.
const WINDOW: usize = 32 << 10;

/// Where a request comes from.
pub(crate) enum Source<'a> {
    /// As it arrived. Each segment is used again once it was read.
    Arrived { rope: Rope, at: usize },
    /// Out of something that undoes its compression.
    Decoded(Box<dyn Read + 'a>),
}

impl Source<'_> {
    /// A request as it arrived.
    pub(crate) fn arrived(rope: Rope) -> Self {
        Self::Arrived { rope, at: 0 }
    }

    fn read(&mut self, buffer: &mut [u8], out: &mut Out) -> Result<usize, Fault> {
        match self {
            Self::Decoded(reader) => loop {
                match reader.read(buffer) {
                    Ok(read) => return Ok(read),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => return Err(Fault::Encoding),
                }
            },
            Self::Arrived { rope, at } => {
                let Some(first) = rope.segments().next() else { return Ok(0) };
                let now = (first.len() - *at).min(buffer.len());
                buffer[..now].copy_from_slice(&first[*at..*at + now]);
                *at += now;
                if *at == first.len()
                    && let Some(read) = rope.pop_front()
                {
                    out.reuse(read);
                    *at = 0;
                }
                Ok(now)
            }
        }
    }
}

/// A window that moves over a request. What can be seen is valid UTF-8 by itself.
pub(super) struct Window<'a> {
    source: Source<'a>,
    bytes: Box<[u8]>,
    at: usize,
    /// Up to here it can be seen; behind it is the beginning of a letter.
    end: usize,
    filled: usize,
    read: u64,
    limit: u64,
}

impl<'a> Window<'a> {
    pub(super) fn new(source: Source<'a>, limit: u64) -> Self {
        Self { source, bytes: vec![0; WINDOW].into(), at: 0, end: 0, filled: 0, read: 0, limit }
    }

    /// How many bytes have passed.
    pub(super) fn position(&self) -> u64 {
        self.read - (self.filled - self.at) as u64
    }

    /// What can be seen. Empty only at the request's end.
    #[inline]
    pub(super) fn seen(&mut self, out: &mut Out) -> Result<&[u8], Fault> {
        if self.at == self.end {
            self.fill(out)?;
        }
        Ok(&self.bytes[self.at..self.end])
    }

    /// Moves on by so many bytes of what can be seen.
    #[inline]
    pub(super) fn pass(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// The next byte; none at the request's end.
    #[inline]
    pub(super) fn peek(&mut self, out: &mut Out) -> Result<Option<u8>, Fault> {
        if self.at < self.end {
            return Ok(Some(self.bytes[self.at]));
        }
        self.seen(out).map(|seen| seen.first().copied())
    }

    fn fill(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.bytes.copy_within(self.end..self.filled, 0);
        self.filled -= self.end;
        (self.at, self.end) = (0, 0);
        while self.end == 0 {
            let read = self.source.read(&mut self.bytes[self.filled..], out)?;
            self.read += read as u64;
            self.filled += read;
            if self.read > self.limit {
                return Err(Fault::TooLarge { limit: self.limit });
            }
            self.end = match std::str::from_utf8(&self.bytes[..self.filled]) {
                Ok(_) => self.filled,
                // The rest of a letter may be in what comes next.
                Err(error) if error.error_len().is_none() && read > 0 => error.valid_up_to(),
                Err(_) => return Err(Fault::Syntax { what: "it is no text in UTF-8", at: self.position() }),
            };
            if read == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}
