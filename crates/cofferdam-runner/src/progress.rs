//! What somebody who watches an attempt is told, and what they may ask for.

use cofferdam_core::Event;

/// How far an attempt is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Other attempts take all the slots, or older runs wait for the next one.
    Waiting {
        /// How many are taken.
        in_use: u32,
        /// How many there are.
        slots: u32,
    },
    /// Earlier messages to the same agent come first, or somebody works in its folder.
    InLine,
    /// The workspace is made; the text says what is going on (such as a fetch's progress).
    Preparing(String),
    /// The sandbox is made and its seal measured.
    Sealing,
    /// The agent works.
    Running,
    /// What it left is collected.
    Collecting,
    /// The changes are committed and pushed.
    Publishing,
}

/// What a watcher is told. An event is told only after it has been stored for good.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The attempt is this far.
    Stage(Stage),
    /// A new event.
    Event(Event),
}

/// What the person at the terminal has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cancel {
    /// Nothing.
    No,
    /// End the agent, with its grace.
    Gracefully,
    /// End it now.
    Now,
}
