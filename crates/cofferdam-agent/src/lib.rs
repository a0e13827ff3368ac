//! One module per agent CLI: how it is called, what its output means, where it is found.
//!
//! Main type: [`Adapter`], made from a setup by [`for_setup`].
//!
//! This crate does no I/O at all: an adapter gives an argument list and reads lines that somebody
//! hands to it, and [`Adapter::detect`] asks a predicate of its caller. That is what lets every adapter
//! be tested on recorded transcripts, and what keeps the worker the only one that starts processes.

mod adapter;
mod command;
mod detect;
mod output_text;

pub use adapter::{Adapter, Command, Parsed, Stdin, Stream, Supports, for_setup};
pub use detect::Search;
pub use output_text::{exact_text, shown_text};
