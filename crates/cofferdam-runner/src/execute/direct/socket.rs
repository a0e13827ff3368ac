//! The way to the model: the attempt's own socket, behind which the broker is.

use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use cofferdam_core::gateway;
use cofferdam_direct::{Connect, Connection};

pub(super) struct AttemptSocket {
    /// Where the sockets are.
    pub(super) folder: PathBuf,
}

#[async_trait]
impl Connect for AttemptSocket {
    async fn connect(&self) -> io::Result<Box<dyn Connection>> {
        Ok(Box::new(cofferdam_broker::connect(&self.folder, gateway::SOCKET).await?))
    }
}
