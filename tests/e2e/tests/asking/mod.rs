//! Questions to a model, which answers without an agent's process: over HTTP and on the command line.

mod command;
mod http;
mod stage;
mod stream;
