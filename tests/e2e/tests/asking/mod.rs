//! Questions to a model, which answers without an agent's process: over HTTP and on the command line.

mod command;
mod hostile_pages;
mod http;
mod pages;
mod project;
mod stage;
mod stream;
mod terminal;
