//! One module per agent CLI: how it is called, what its output means, what it is told.
//!
//! Main type: [`Adapter`], made for a run's work by [`for_work`]. All coding agents' lines become the same few
//! kinds of events, which docs/reference/events.md describes; a line that is not understood is kept as it is.
//!
//! This crate does no I/O at all: an adapter gives an argument list, reads lines that somebody hands to it and
//! gives lines that somebody is to write. That is what lets every adapter be tested on recorded transcripts, and
//! what keeps the worker the only one that starts processes.

mod adapter;
mod claude_code;
mod codex;
mod command;
mod facts;
mod json_lines;
mod opencode;
mod output_text;

pub use adapter::{
    Adapter, Command, Context, HomeFile, Link, Message, ModelRoute, Parsed, Receipt, Stdin, Step, Stream,
    for_work,
};
pub use output_text::{exact_text, shown_text};
