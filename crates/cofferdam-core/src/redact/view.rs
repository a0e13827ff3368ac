//! One reading of the bytes: its last symbols, and where each of them began.

use std::ops::Range;

use super::table::{Recent, Table, WINDOW};

/// What may stand between two symbols of one secret, in bytes. More is no wrapping; and what is held back of a
/// stream must be bounded.
const WIDEST_GAP: usize = 64;

/// One reading.
#[derive(Default)]
pub(super) struct View {
    recent: Recent,
    count: usize,
    starts: [usize; WINDOW],
    next: usize,
    gap: usize,
}

impl View {
    /// Reads a symbol that stands at `at`. Returns what is a secret's, up to there.
    #[inline]
    pub(super) fn push(&mut self, table: &Table, symbol: u8, at: Range<usize>) -> Option<Range<usize>> {
        self.recent = self.recent << 8 | Recent::from(symbol);
        self.starts[self.next % WINDOW] = at.start;
        self.next += 1;
        self.count = (self.count + 1).min(WINDOW);
        self.gap = 0;
        match table.longest(self.recent, self.count) {
            0 => None,
            length => Some(self.starts[(self.next - length) % WINDOW]..at.end),
        }
    }

    /// Passes over bytes that may stand between symbols.
    #[inline]
    pub(super) fn skip(&mut self, bytes: usize) {
        self.gap += bytes;
        if self.gap > WIDEST_GAP {
            self.count = 0;
        }
    }

    /// Forgets what came before: it cannot belong to what follows.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.count = 0;
    }

    /// Takes the last symbol back if it is this one.
    pub(super) fn take_back(&mut self, symbol: u8) -> bool {
        let is_last = self.count > 0 && self.recent & 0xff == Recent::from(symbol);
        if is_last {
            self.recent >>= 8;
            self.count -= 1;
            self.next -= 1;
        }
        is_last
    }

    /// Where the earliest symbol stands that a secret to come could begin with. The first of a full window counts:
    /// if the last symbol is taken back, the one that comes instead can complete it.
    pub(super) fn earliest(&self) -> Option<usize> {
        (self.count > 0).then(|| self.starts[(self.next - self.count) % WINDOW])
    }
}
