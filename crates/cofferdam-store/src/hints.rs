//! Pieces of what models are saying, on their way to whoever reads the run. They ride on the wakes: to the readers of this
//! machine as datagrams, to those of other nodes as the payload of a NOTIFY.
//!
//! A hint may be lost and is never kept. What it is a piece of becomes an event, and a reader that missed a piece waits for
//! that.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use cofferdam_core::{Delta, RunId};
use serde::{Deserialize, Serialize};

/// A piece of what a live run is saying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The run.
    pub run: RunId,
    /// The piece.
    #[serde(flatten)]
    pub delta: Delta,
}

/// The text of one hint in bytes. A byte is written as six at most, so that a hint always fits into a message.
const MOST_TEXT: usize = 1_200;
/// What may wait to be sent, in bytes of text. What is said beyond it is lost.
const MOST_WAITING: usize = 256 << 10;

/// Hints that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    hints: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    hints: VecDeque<Hint>,
    bytes: usize,
}

impl Waiting {
    /// Adds a hint; to the last one, if that is of the same block.
    pub(crate) fn add(&self, run: &RunId, delta: Delta) {
        let mut queue = self.queue();
        if queue.bytes + delta.text.len() > MOST_WAITING {
            return;
        }
        queue.bytes += delta.text.len();
        for delta in delta.in_pieces(MOST_TEXT) {
            match queue.hints.back_mut() {
                Some(last) if last.run == *run && fits(&last.delta, &delta) => {
                    last.delta.text.push_str(&delta.text);
                }
                Some(_) | None => queue.hints.push_back(Hint { run: run.clone(), delta }),
            }
        }
    }

    /// All that wait, as messages of at most `most` bytes each.
    pub(crate) fn take(&self, most: usize) -> Vec<String> {
        let hints = std::mem::take(&mut *self.queue()).hints;
        let mut messages: Vec<String> = Vec::new();
        for hint in hints {
            let line = line_of(&hint);
            match messages.last_mut() {
                Some(message) if message.len() + 1 + line.len() <= most => {
                    message.push('\n');
                    message.push_str(&line);
                }
                Some(_) | None => messages.push(line),
            }
        }
        messages
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fits(last: &Delta, next: &Delta) -> bool {
    last.is_before(next) && last.text.len() + next.text.len() <= MOST_TEXT
}

/// A hint on one line, without a dollar: PostgreSQL takes a message between `$…$` quotes, which what a model says must not
/// end. In JSON a dollar is only found in texts, which may write it as an escape.
fn line_of(hint: &Hint) -> String {
    serde_json::to_string(hint).expect("a hint is plain JSON").replace('$', "\\u0024")
}

/// The hints of a message. What is none is left out: whoever may write to the socket could write anything.
pub(crate) fn read(message: &str) -> impl Iterator<Item = Hint> {
    message.lines().filter_map(|line| serde_json::from_str(line).ok())
}

#[cfg(test)]
mod tests {
    use cofferdam_core::DeltaKind;

    use super::*;

    fn run(number: u128) -> RunId {
        RunId::new(1, number)
    }

    fn delta(index: u32, at: u64, text: &str) -> Delta {
        Delta { attempt: 1, turn: 1, index, kind: DeltaKind::Text, at, text: text.to_owned() }
    }

    #[test]
    fn pieces_of_one_block_become_one_and_others_stay_apart() {
        let waiting = Waiting::default();
        waiting.add(&run(1), delta(0, 0, "two "));
        waiting.add(&run(1), delta(0, 4, "words"));
        waiting.add(&run(2), delta(0, 0, "another run"));
        waiting.add(&run(1), delta(1, 0, "another block"));
        let messages = waiting.take(10_000);
        assert_eq!(messages.len(), 1);
        let texts: Vec<String> = read(&messages[0]).map(|hint| hint.delta.text).collect();
        assert_eq!(texts, ["two words", "another run", "another block"]);
        assert!(waiting.take(10_000).is_empty());
    }

    #[test]
    fn a_message_is_never_too_long_and_what_waits_is_bounded() {
        let waiting = Waiting::default();
        // Each of these bytes is written as six.
        waiting.add(&run(1), delta(0, 0, &"\u{1}$".repeat(MOST_WAITING / 2)));
        waiting.add(&run(1), delta(1, 0, "lost"));
        let messages = waiting.take(7_900);
        assert!(messages.iter().all(|message| message.len() <= 7_900 && !message.contains('$')));
        let said: usize =
            messages.iter().flat_map(|message| read(message)).map(|hint| hint.delta.text.len()).sum();
        assert_eq!(said, MOST_WAITING);
        waiting.add(&run(1), delta(2, 0, "there is room again"));
        assert_eq!(waiting.take(7_900).len(), 1);
    }

    #[test]
    fn what_is_no_hint_is_left_out() {
        assert_eq!(read("{}\nnonsense\n\n[1]").count(), 0);
    }
}
