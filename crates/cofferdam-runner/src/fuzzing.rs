//! The parts that read what strangers write, for the fuzzers. Not an interface.

use cofferdam_core::{NewEvent, WorkerExited};

use crate::execute::lines::{Line, parse};

/// What a line of a worker was taken for.
#[derive(Debug, Clone, PartialEq)]
pub enum Taken {
    /// An event, or a line that is kept as a log.
    Event(NewEvent),
    /// The measured seal, of this line.
    Seal(u64),
    /// What a try of a phase brought, of this line.
    Phase(u64),
    /// The last line.
    Exited(WorkerExited),
    /// What became of a message.
    Receipt,
}

/// What a line of a worker is taken for, if it says anything.
#[must_use]
pub fn worker_line(bytes: &[u8]) -> Option<Taken> {
    parse(bytes).map(|line| match line {
        Line::Event(event) => Taken::Event(event),
        Line::Seal(_, seq) => Taken::Seal(seq),
        Line::Phase(_, place) => Taken::Phase(place.seq),
        Line::Exited(exited, _) => Taken::Exited(exited),
        Line::Receipt(_) => Taken::Receipt,
    })
}
