//! The real worker as a process, driven over its pipes. `examples/worker.rs` is the program.

mod conversation;
mod ending;
mod gateway;
mod host_lines;
mod output;
mod phases;
mod support;
