//! Where the API of the service begins.

use std::net::SocketAddr;

use cofferdam_core::Settings;
use cofferdam_runner::Home;
use cofferdam_store::Store;
use tokio::sync::watch;

use crate::failure::Failure;

/// Starts the API on `service.listen`. When this returns, it takes requests at the address that is returned, if it listens
/// at all, and it does so until `stop` is true.
pub(super) async fn start(
    _home: &Home,
    _settings: &Settings,
    store: Store,
    _stop: watch::Receiver<bool>,
) -> Result<Option<SocketAddr>, Failure> {
    store.close().await;
    Ok(None)
}
