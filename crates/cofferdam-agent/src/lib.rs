//! One folder per agent, with all that is known of it: how it is called, what its output means, what it is told, how it
//! is installed, what its login file holds, how it is asked whether it can work.
//!
//! Main types: [`Profile`], which is what is known of one agent ([`profile`] is the list of them), and [`Adapter`], made for a run's work by [`for_work`]. All coding agents' lines become the same few
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
mod host_check;
mod installed;
mod json_lines;
mod login;
mod opencode;
mod output_text;
mod profile;

pub use adapter::{
    Adapter, Command, Context, HomeFile, Link, Message, ModelRoute, Parsed, Stdin, Step, Stream, for_work,
};
pub use host_check::{
    HostAnswer, HostCheck, HostContext, HostFinding, HostQuestion, HostStep, HostWord, TRIVIAL_PROMPT,
};
pub use installed::{Bundle, Installed, Machine};
pub use login::{
    FoundLogin, KeyOrder, LoginContent, LoginFacts, LoginFile, LoginProblem, OwnKey, VendorLogin,
};
pub use output_text::{exact_text, shown_text};
pub use profile::{Profile, profile};
