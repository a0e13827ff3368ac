//! An agent without a process: a conversation with a model over the Anthropic Messages API, in which the model may use
//! tools that only read.
//!
//! Main function: [`converse`]. It goes on with a conversation from its exact [`Turn`]s, wherever these end, so that a
//! crash, a retry and a resumed run are the same case. What it needs of the world it is given: a [`ModelClient`] that
//! reaches the model, [`Tools`], a [`Journal`] that keeps each turn before the next step is taken, and a [`Mail`] with
//! what people say meanwhile.
//!
//! This crate knows no store, no HTTP server and no sandbox, holds no key, and never reads the clock but to wait.

mod answer;
mod calls;
mod client;
mod converse;
mod ended;
mod facts;
mod history;
mod ports;
mod request;
pub mod sealed;
mod settings;
mod step;
mod structured;
mod tool;
pub mod tools;
mod turn;
mod usage;

pub use client::{Connect, Connection, ModelClient, Patience};
pub use converse::converse;
pub use ended::{Denial, Ended, Report, Subtype};
pub use history::History;
pub use ports::{Delivered, Delta, Entry, Fact, Journal, JournalError, Mail, Said};
pub use settings::{Settings, system_prompt};
pub use tool::{Tool, ToolResult, Tools};
pub use turn::Turn;
pub use usage::Usage;
