//! A service on the sandbox's loopback: raw bytes to one target.

use std::sync::Arc;

use cofferdam_core::HostPort;
use cofferdam_net::AddressCheck;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::UnixStream;

use crate::http1::Watched;
use crate::recorder::Kind;
use crate::refusal::Refusal;
use crate::served::Served;

/// What is held of a connection in each direction.
const BUFFER: usize = 32 << 10;

/// Joins a connection with the target. The target may be at a private address, as a database is: it was
/// chosen with the run, by name and port, and nothing the agent sends changes it.
pub(crate) async fn serve(serving: Arc<Served>, target: HostPort, stream: UnixStream) {
    let bounds = *serving.bounds();
    let joined = async {
        match serving.dialer.connect(&target, &AddressCheck::Trusted).await {
            Ok(mut service) => {
                serving.recorder.allowed(Kind::Forward, &target.to_string(), service.peer_addr().ok());
                let mut client = Watched::new(stream, bounds.idle_time);
                // Either side may be gone at any moment; there is nobody to tell.
                let _ = copy_bidirectional_with_sizes(&mut client, &mut service, BUFFER, BUFFER).await;
            }
            Err(error) => {
                let refusal = Refusal::undialled(&serving.attempt, &error);
                serving.recorder.refused(Kind::Forward, &target.to_string(), &refusal);
            }
        }
    };
    if tokio::time::timeout(bounds.total_time, joined).await.is_err() {
        tracing::debug!(%target, "cut a forwarded connection that lasted too long");
    }
}
