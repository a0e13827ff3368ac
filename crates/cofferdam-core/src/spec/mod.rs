//! A spec: a piece of work that is done in phases, each checked by a gate before the next starts.

mod phase;

pub use phase::{GATE_TO_PASS, MOST_TRIES, PHASES_VERSION, Phase};
