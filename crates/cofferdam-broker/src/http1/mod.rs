//! One HTTP connection: a strict look at every head before hyper reads it, and time limits around all of it.

mod connection;
mod guard;
mod head;
mod watch;

pub(crate) use connection::serve;
pub(crate) use guard::HeadGuard;
pub(crate) use watch::Watched;
