//! JSON that is read once, from its first byte to its last, and written again on the way without changing what it
//! says: in one spelling, with its fields in their order, because the vendors' prompt caches compare bytes. A field that
//! occurs twice is an error, because two readers may take a different one of the two.
//!
//! Nothing is kept of what was read but what a check asks for. The attack: a request whose values are tiny and many, each
//! of which would take ten or twenty times its size as a value in memory.

mod fault;
mod letters;
mod names;
mod out;
mod scan;
mod text;
mod window;

pub(crate) use fault::Fault;
pub(crate) use out::Out;
pub(crate) use scan::{Ahead, Keep, Scanner, Shape};
pub(crate) use text::Short;
pub(crate) use window::Source;

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
