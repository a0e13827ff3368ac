//! Shows a block while it is said, without secrets.

use cofferdam_core::{Delta, DeltaKind, RedactedStream, Redactor};

/// What of the block that is being said was shown.
pub(super) struct Shown {
    redactor: Redactor,
    attempt: u32,
    block: Option<Block>,
}

struct Block {
    turn: u32,
    index: u32,
    /// Holds back what may be the beginning of a secret.
    stream: RedactedStream,
    /// Bytes of a character that is not whole yet.
    rest: Vec<u8>,
    /// How many characters were shown.
    at: u64,
}

impl Shown {
    pub(super) fn new(redactor: Redactor, attempt: u32) -> Self {
        Self { redactor, attempt, block: None }
    }

    /// What can be shown, now that a block goes on like this. What is held back at its end is in its event.
    pub(super) fn next(&mut self, said: cofferdam_direct::Delta) -> Option<Delta> {
        let (kind, turn, index, text) = match said {
            cofferdam_direct::Delta::Text { turn, index, text } => (DeltaKind::Text, turn, index, text),
            cofferdam_direct::Delta::Thinking { turn, index, text } => {
                (DeltaKind::Thinking, turn, index, text)
            }
        };
        let block = match &mut self.block {
            Some(block) if (block.turn, block.index) == (turn, index) => block,
            _ => {
                let stream = self.redactor.stream();
                self.block.insert(Block { turn, index, stream, rest: Vec::new(), at: 0 })
            }
        };
        block.rest.extend(block.stream.push(text.as_bytes()));
        let whole = match std::str::from_utf8(&block.rest) {
            Ok(_) => block.rest.len(),
            Err(error) => error.valid_up_to(),
        };
        let text =
            String::from_utf8(block.rest.drain(..whole).collect()).ok().filter(|text| !text.is_empty())?;
        let delta = Delta { attempt: self.attempt, turn, index, kind, at: block.at, text };
        block.at = delta.end();
        Some(delta)
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_core::Secrets;

    use super::*;

    fn said(turn: u32, text: &str) -> cofferdam_direct::Delta {
        cofferdam_direct::Delta::Text { turn, index: 0, text: text.to_owned() }
    }

    #[test]
    fn a_secret_is_not_shown_however_it_is_cut() {
        let secret = "sk-ant-0123456789abcdef";
        let mut secrets = Secrets::default();
        secrets.add(secret);
        let redactor = Redactor::new(secrets);
        let text = format!("The key is {secret}, and üß🦀 is no key. {}", "More of it. ".repeat(40));
        for most in [1, 2, 7, 30] {
            let mut shown = Shown::new(redactor.clone(), 1);
            let letters: Vec<char> = text.chars().collect();
            let mut seen = String::new();
            for piece in letters.chunks(most) {
                let piece: String = piece.iter().collect();
                if let Some(delta) = shown.next(said(1, &piece)) {
                    assert_eq!(delta.at, seen.chars().count() as u64);
                    seen.push_str(&delta.text);
                }
            }
            assert!(seen.contains("More of it.") && !seen.contains("0123456789"), "{seen}");
            // The event of the block begins with all that was shown of it.
            assert!(redactor.text(&text).starts_with(&seen), "{seen}");
        }
    }

    #[test]
    fn each_block_begins_anew() {
        let mut shown = Shown::new(Redactor::default(), 3);
        let long = "Something that is long enough to be shown at once. ".repeat(4);
        assert_eq!(shown.next(said(1, &long)).map(|delta| (delta.at, delta.attempt)), Some((0, 3)));
        assert!(shown.next(said(1, &long)).is_some_and(|delta| delta.at > 0));
        assert_eq!(shown.next(said(2, &long)).map(|delta| delta.block()), Some((3, 2, 0)));
    }
}
