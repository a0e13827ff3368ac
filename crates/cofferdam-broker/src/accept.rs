//! Taking the connections of an attempt, as many as it may have at a time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::HostPort;
use http::StatusCode;
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use crate::places::{NoPlace, Place, Places};
use crate::recorder::Kind;
use crate::refusal::Refusal;
use crate::served::Served;
use crate::{forward, http1};

/// How long to wait when the machine has no descriptor left for another connection.
const PAUSE: Duration = Duration::from_millis(100);
/// How long to look for connections that were made before a socket lost its path.
const LAST: Duration = Duration::from_millis(10);

/// What is behind a socket.
#[derive(Debug, Clone)]
pub(crate) enum Behind {
    /// Proxy, model and repository.
    Gateway,
    /// One service.
    Service(HostPort),
}

/// Takes connections until it is dropped, and they end with it. Once the broker retires it takes no more, and waits for
/// those that it has.
pub(crate) async fn accept(serving: Arc<Served>, listener: UnixListener, behind: Behind, places: Places) {
    let mut taken = Taken { serving, behind, places, connections: JoinSet::new() };
    loop {
        tokio::select! {
            accepted = listener.accept() => taken.take(accepted).await,
            Some(ended) = taken.connections.join_next() => taken.ended(&ended),
            () = taken.serving.retired() => break,
        }
    }
    // The socket has no path any more. Whoever connected before is served like everybody.
    while let Ok(accepted) = timeout(LAST, listener.accept()).await {
        taken.take(accepted).await;
    }
    drop(listener);
    while let Some(ended) = taken.connections.join_next().await {
        taken.ended(&ended);
    }
}

/// The connections of one socket.
struct Taken {
    serving: Arc<Served>,
    behind: Behind,
    places: Places,
    connections: JoinSet<()>,
}

impl Taken {
    async fn take(&mut self, accepted: io::Result<(UnixStream, SocketAddr)>) {
        match (accepted, self.places.take()) {
            (Ok((stream, _)), Ok(place)) => {
                let (serving, behind) = (Arc::clone(&self.serving), self.behind.clone());
                self.connections.spawn(serve(serving, stream, behind, place));
            }
            (Ok((stream, _)), Err(no_place)) => turn_away(&self.serving, &stream, &self.behind, no_place),
            (Err(error), _) => {
                tracing::warn!(run.id = %self.serving.attempt.run, %error, "failed to accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn ended(&self, ended: &Result<(), JoinError>) {
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!(run.id = %self.serving.attempt.run, %error, "a connection of the broker panicked");
        }
    }
}

async fn serve(serving: Arc<Served>, stream: UnixStream, behind: Behind, place: Place) {
    match behind {
        Behind::Gateway => http1::serve(serving, stream).await,
        Behind::Service(target) => forward::serve(serving, target, stream).await,
    }
    drop(place);
}

/// Answers without waiting: whoever opens too many connections does not get a task for each.
fn turn_away(serving: &Served, stream: &UnixStream, behind: &Behind, no_place: NoPlace) {
    let reason = match no_place {
        NoPlace::OfAttempt => {
            format!("this run has {} connections open and may have no more", serving.bounds.connections)
        }
        NoPlace::OfAll => "other runs have most of the broker's connections open; try again later".to_owned(),
    };
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
