//! The way to the broker: puts its sockets on the loopback.

use std::io;

use cofferdam_core::{Gateway, gateway};

/// A gateway that the agent can use.
pub(crate) struct Opened {
    /// The port on the loopback that leads to the broker.
    pub port: u16,
}

/// Opens the gateway of a job.
pub(crate) fn open(setup: &Gateway) -> io::Result<Opened> {
    Ok(Opened { port: setup.port.unwrap_or(gateway::PORT) })
}
