//! Redacts bytes that arrive in chunks, whatever the chunks.

use super::scan::{Input, Scanner};
use super::{REDACTED, Redactor};

/// Redacts bytes that arrive in chunks. What could be the beginning of a secret is held back until it is known;
/// that is little, whatever arrives.
pub struct RedactedStream {
    redactor: Redactor,
    scanner: Scanner,
    /// What was not handed over yet.
    held: Vec<u8>,
    /// How much of that was read.
    read: usize,
    /// The position of the first byte that is held.
    start: usize,
    /// Whether what was handed over last ends within a secret or right behind one.
    in_secret: bool,
    has_redacted: bool,
}

impl RedactedStream {
    pub(super) fn new(redactor: Redactor, scanner: Scanner) -> Self {
        Self { redactor, scanner, held: Vec::new(), read: 0, start: 0, in_secret: false, has_redacted: false }
    }

    /// Takes the next bytes, and gives those that are settled.
    #[must_use = "what is settled is handed over once"]
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(chunk);
        self.read += self.scanner.scan(self.redactor.tables(), &self.held[self.read..], Input::Part);
        self.hand_over(self.scanner.settled())
    }

    /// There are no more: gives the rest.
    #[must_use = "what was held back is handed over here"]
    pub fn finish(&mut self) -> Vec<u8> {
        self.read += self.scanner.scan(self.redactor.tables(), &self.held[self.read..], Input::Whole);
        self.hand_over(self.start + self.held.len())
    }

    /// Whether anything was taken out so far.
    #[must_use]
    pub fn has_redacted(&self) -> bool {
        self.has_redacted
    }

    #[cfg(test)]
    pub(super) fn held_back(&self) -> usize {
        self.held.len()
    }

    fn hand_over(&mut self, settled: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(settled - self.start);
        let mut from = self.start;
        for range in self.scanner.found() {
            if range.start >= settled {
                break;
            }
            if range.start > from {
                out.extend_from_slice(&self.held[from - self.start..range.start - self.start]);
                self.in_secret = false;
            }
            // A secret that goes on, or another right behind it, is one.
            if !self.in_secret {
                out.extend_from_slice(REDACTED.as_bytes());
            }
            self.in_secret = true;
            self.has_redacted = true;
            from = range.end.min(settled);
        }
        if settled > from {
            out.extend_from_slice(&self.held[from - self.start..settled - self.start]);
            self.in_secret = false;
        }
        self.scanner.forget(settled);
        self.held.drain(..settled - self.start);
        self.read -= settled - self.start;
        self.start = settled;
        out
    }
}
