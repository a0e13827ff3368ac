//! Taking the connections of an attempt, as many as it may have at a time.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::HostPort;
use http::StatusCode;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::recorder::Kind;
use crate::refusal::Refusal;
use crate::served::Served;
use crate::{forward, http1};

/// How long to wait when the machine has no descriptor left for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// What is behind a socket.
#[derive(Debug, Clone)]
pub(crate) enum Behind {
    /// Proxy, model and repository.
    Gateway,
    /// One service.
    Service(HostPort),
}

/// Takes connections until it is dropped, and they end with it.
pub(crate) async fn accept(
    serving: Arc<Served>,
    listener: UnixListener,
    behind: Behind,
    places: Arc<Semaphore>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended && error.is_panic() {
                    tracing::error!(run.id = %serving.attempt.run, %error, "a connection of the broker panicked");
                }
                continue;
            }
        };
        match (accepted, Arc::clone(&places).try_acquire_owned()) {
            (Ok((stream, _)), Ok(place)) => {
                connections.spawn(serve(Arc::clone(&serving), stream, behind.clone(), place));
            }
            (Ok((stream, _)), Err(_)) => turn_away(&serving, &stream, &behind),
            (Err(error), _) => {
                tracing::warn!(run.id = %serving.attempt.run, %error, "failed to accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn serve(serving: Arc<Served>, stream: UnixStream, behind: Behind, place: OwnedSemaphorePermit) {
    match behind {
        Behind::Gateway => http1::serve(serving, stream).await,
        Behind::Service(target) => forward::serve(serving, target, stream).await,
    }
    drop(place);
}

/// Answers without waiting: whoever opens too many connections does not get a task for each.
fn turn_away(serving: &Served, stream: &UnixStream, behind: &Behind) {
    let reason = format!("this run has {} connections open and may have no more", serving.bounds.connections);
    let refusal = Refusal::malformed(StatusCode::SERVICE_UNAVAILABLE, &reason);
    match behind {
        Behind::Gateway => {
            serving.recorder.refused(Kind::Http, "", &refusal);
            // A socket that was just opened has room for it; one that has not is closed without a word.
            let _ = stream.try_write(&refusal.to_bytes());
        }
        Behind::Service(target) => serving.recorder.refused(Kind::Forward, &target.to_string(), &refusal),
    }
}
