//! The newest events of one run, as they go over the wire.

use std::collections::VecDeque;

use bytes::Bytes;

/// More than is written between two looks at a busy run.
const MOST_FRAMES: usize = 256;
/// What one run's frames may take in memory, however many read it.
const MOST_BYTES: usize = 64 << 10;

/// The newest frames of one run, without a gap between them.
#[derive(Debug, Default)]
pub(super) struct Recent {
    frames: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl Recent {
    /// Adds the next frame. The oldest go when there are too many.
    pub(super) fn push(&mut self, seq: u64, frame: Bytes) {
        if self.frames.back().is_some_and(|(last, _)| last + 1 != seq) {
            self.frames.clear();
            self.bytes = 0;
        }
        self.bytes += frame.len();
        self.frames.push_back((seq, frame));
        while self.frames.len() > MOST_FRAMES || (self.bytes > MOST_BYTES && self.frames.len() > 1) {
            let Some((_, oldest)) = self.frames.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// The frames after this number, if the next one is still here.
    pub(super) fn after(&self, seq: u64) -> Option<Vec<(u64, Bytes)>> {
        let (first, _) = self.frames.front()?;
        let skip = usize::try_from((seq + 1).checked_sub(*first)?).ok()?;
        (skip < self.frames.len()).then(|| self.frames.iter().skip(skip).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_number_is_handed_out_without_a_gap_or_not_at_all() {
        let mut recent = Recent::default();
        for seq in 1..=600 {
            recent.push(seq, Bytes::from_static(b"x"));
        }
        assert_eq!(recent.after(0), None, "the oldest are gone");
        let frames = recent.after(590).unwrap();
        assert_eq!(frames.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), (591..=600).collect::<Vec<_>>());
        assert_eq!(recent.after(600), None);
        recent.push(700, Bytes::from_static(b"x"));
        assert_eq!(recent.after(600), None, "after a gap only what is known to follow");
        assert_eq!(recent.after(699).unwrap().len(), 1);
    }

    #[test]
    fn the_memory_of_a_run_is_bounded() {
        let mut recent = Recent::default();
        for seq in 1..=100 {
            recent.push(seq, Bytes::from(vec![0; 10 << 10]));
        }
        assert!(recent.bytes <= MOST_BYTES, "{}", recent.bytes);
        recent.push(101, Bytes::from(vec![0; 2 * MOST_BYTES]));
        assert_eq!(recent.frames.len(), 1, "one that is larger than all is kept alone");
    }
}
