//! Connections: how many there are, and how long each may take over what.

mod accept;
mod timed;

pub(crate) use accept::serve;
