//! Pieces of what a model is saying, shown before the whole of it is on record.

use serde::{Deserialize, Serialize};

/// A piece of one block of a model's answer. It is shown at once and never kept: the whole block follows as an event, and
/// begins with what was shown of it. Whoever missed a piece waits for that event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// The attempt that says it.
    pub attempt: u32,
    /// The turn of the model, as the block's event counts it.
    pub turn: u32,
    /// The block's place in the turn, as its event counts it.
    pub index: u32,
    /// What the block is.
    pub kind: DeltaKind,
    /// How many characters (Unicode code points) of the block come before this piece.
    pub at: u64,
    /// The piece.
    pub text: String,
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// Something that is said.
    Text,
    /// Something that is thought.
    Thinking,
}

impl Delta {
    /// The block that it is a piece of: its attempt, turn and index.
    #[must_use]
    pub fn block(&self) -> (u32, u32, u32) {
        (self.attempt, self.turn, self.index)
    }

    /// How many characters of the block are known with this piece and all before it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.at + self.text.chars().count() as u64
    }

    /// Whether `next` is the piece that comes right after this one.
    #[must_use]
    pub fn is_before(&self, next: &Self) -> bool {
        self.block() == next.block() && self.kind == next.kind && self.end() == next.at
    }

    /// The same in pieces of at most `most` bytes of text, which has to be enough for one character.
    pub fn in_pieces(self, most: usize) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let mut piece = rest.take()?;
            if piece.text.len() > most {
                let cut = (0..=most).rev().find(|&at| piece.text.is_char_boundary(at)).unwrap_or(0);
                let text = piece.text.split_off(cut);
                rest = Some(Self { at: piece.end(), text, ..piece.clone() });
            }
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(at: u64, text: &str) -> Delta {
        Delta { attempt: 1, turn: 2, index: 0, kind: DeltaKind::Text, at, text: text.to_owned() }
    }

    #[test]
    fn a_delta_is_cut_between_characters_and_says_where_each_piece_belongs() {
        let text = "aüb€c🦀d".repeat(3);
        for most in 4..20 {
            let pieces: Vec<Delta> = delta(7, &text).in_pieces(most).collect();
            assert!(pieces.iter().all(|piece| piece.text.len() <= most && !piece.text.is_empty()));
            assert!(pieces.is_sorted_by(|piece, next| piece.is_before(next)), "{pieces:?}");
            assert_eq!(pieces.iter().map(|piece| piece.text.as_str()).collect::<String>(), text);
            assert_eq!(pieces[0].at, 7);
        }
        assert_eq!(delta(0, "").in_pieces(4).count(), 1);
    }

    #[test]
    fn a_gap_and_another_block_are_seen() {
        assert!(delta(0, "üb").is_before(&delta(2, "c")));
        assert!(!delta(0, "üb").is_before(&delta(3, "c")));
        assert!(!delta(0, "üb").is_before(&Delta { index: 1, ..delta(2, "c") }));
        assert!(!delta(0, "üb").is_before(&Delta { kind: DeltaKind::Thinking, ..delta(2, "c") }));
    }
}
