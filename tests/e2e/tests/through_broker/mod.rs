//! Real programs in a sealed sandbox, and real servers outside: what goes through the broker, and what does not.

mod for_others;
mod forward;
pub(crate) mod git;
mod packages;
mod publish;
mod tokens;
