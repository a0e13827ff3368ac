//! The built binary from outside, without a sandbox; and who knows whom.

mod agents_once;
mod architecture;
mod cli;
mod edges;
mod modules;
mod sealed_tool;
mod settings;
