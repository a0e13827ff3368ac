//! The processes of a service: killed, drained, handed over, and told about.

mod breaker;
mod brokers;
mod daemon;
mod drain;
mod kills;
mod places;
pub(crate) mod stage;
