//! The built binary from outside, without a sandbox; and who knows whom.

mod cli;
mod edges;
mod settings;
