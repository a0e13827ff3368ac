//! Why points are missing: few and short, whatever the output is.

use std::fmt;

/// The most reasons that a gate gives.
const MOST_REASONS: usize = 40;
/// The most characters of one.
const LONGEST_REASON: usize = 400;

/// The reasons so far.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    told: Vec<String>,
    left_out: usize,
}

/// Where in an output something is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    Output,
    Field(&'a Self, &'static str),
    Item(&'a Self, usize),
}

impl Reasons {
    /// Adds one. It is not made where there is no room for it.
    pub(super) fn add(&mut self, reason: impl FnOnce() -> String) {
        if self.told.len() >= MOST_REASONS - 1 {
            self.left_out += 1;
            return;
        }
        let mut reason = reason();
        if let Some((end, _)) = reason.char_indices().nth(LONGEST_REASON) {
            reason.truncate(end);
            reason.push('…');
        }
        // Several points are missing for one thing.
        if !self.told.contains(&reason) {
            self.told.push(reason);
        }
    }

    pub(super) fn finish(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.told.push(format!("and {} more of this kind", self.left_out));
        }
        self.told
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output => Ok(()),
            Self::Field(Self::Output, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
