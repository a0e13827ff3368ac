//! A model that says what a script says: the one part of the tests that is not the real one.
//!
//! [`ScriptedModel::start`] plays a [`Script`] on a port of this machine, over the Anthropic Messages, OpenAI
//! Responses and OpenAI Chat Completions APIs, well enough that the real agent CLIs work against it. It records
//! every request, so that a test can say which key arrived and how often the model was called.
//!
//! It knows no CLI by name: a script's tool calls are turned into whatever tools a request offers.

mod answer;
mod api;
mod choice;
mod conversation;
mod delivery;
mod model;
mod record;
mod script;
mod server;
mod tools;
mod watched;

pub use answer::{Answer, Cut, Failure, Garbage, Hold, ToolCall, Usage};
pub use conversation::Api;
pub use model::ScriptedModel;
pub use record::{Ending, Kind, Recorded};
pub use script::{Script, ScriptError, Session, When};
