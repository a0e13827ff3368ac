//! Letting go of an attempt that is no longer this node's.
//!
//! Somebody beside us, in the same state folder, goes on with the same sandbox: it is theirs. Somebody on another machine
//! cannot: there the run is lost, and may begin anew any moment. Then what is here has to end at once, since nobody else
//! on this machine will do it.

use cofferdam_core::with_causes;
use cofferdam_store::{Claimed, Error};

use super::hold::Hold;
use super::{After, Attempt, ExecuteError, destroy};
use crate::node::Node;
use crate::node_lock::is_alive;

/// Who has the attempt now.
enum Holder {
    /// Nobody, or somebody who cannot reach the sandbox.
    NotHere,
    /// A process of this state folder.
    Here,
}

/// Ends what is here of an attempt that was lost, unless it is somebody's beside us.
pub(super) async fn after_lease_loss(attempt: &mut Attempt<'_>, hold: Hold) -> Result<After, ExecuteError> {
    match hold {
        Hold::Unknown => {
            kill(attempt).await;
            // Once the record answers, whoever has the run says how it ended; if that is us, as after a restart.
            Err(ExecuteError::OutOfTouch)
        }
        Hold::Taken | Hold::Ours => {
            match holder(attempt.node, &attempt.claimed).await {
                Holder::Here => {}
                Holder::NotHere => {
                    kill(attempt).await;
                    destroy(attempt).await;
                }
            }
            Err(ExecuteError::LeaseLost)
        }
    }
}

/// What an error of the record means: that the attempt is not ours, or that it has to be taken up again.
pub(super) async fn after_error(
    attempt: &mut Attempt<'_>,
    error: ExecuteError,
) -> Result<After, ExecuteError> {
    match error {
        ExecuteError::Store(Error::StaleLease { .. } | Error::AlreadyFinal { .. }) => {
            after_lease_loss(attempt, Hold::Taken).await
        }
        error => Err(error),
    }
}

async fn holder(node: &Node, claimed: &Claimed) -> Holder {
    let live = match node.store.live_runs().await {
        Ok(live) => live,
        // It is not ours in any case, and the next sweep looks again.
        Err(error) => {
            tracing::warn!(error = %with_causes(&error), "who has a run now cannot be found out");
            return if node.is_shared() { Holder::NotHere } else { Holder::Here };
        }
    };
    let now = live.iter().find(|live| live.attempt == claimed.attempt);
    let is_here = now.is_some_and(|live| {
        live.place.as_ref().is_none_or(|place| *place == node.place) && is_alive(&node.home, &live.node)
    });
    if is_here { Holder::Here } else { Holder::NotHere }
}

/// Ends the sandbox and leaves what it holds: its end may still have to be told.
async fn kill(attempt: &mut Attempt<'_>) {
    let Ok(backend) = attempt.backend() else { return };
    let id = attempt.sandbox_id();
    let killed = match backend.open(&id).await {
        Ok(sandbox) => sandbox.kill().await,
        Err(cofferdam_sandbox::OpenError::NotFound(_)) => return,
        Err(error) => Err(error),
    };
    if let Err(error) = killed {
        tracing::warn!(sandbox.id = %id, error = %with_causes(&error), "a sandbox could not be ended");
    }
}
