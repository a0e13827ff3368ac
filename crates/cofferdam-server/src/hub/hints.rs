//! Hands what runs are saying to those who read them.

use std::sync::Arc;

use cofferdam_store::Hint;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Watched;

/// How many pieces of one run wait for a reader that is slow to take them. Those that are more are lost to it.
pub(super) const MOST_DELTAS: usize = 64;

/// Hands them out as long as somebody could read.
pub(super) async fn hand_out(watched: Arc<Watched>, mut hints: Receiver<Hint>) {
    loop {
        match hints.recv().await {
            Ok(Hint { run, delta }) => {
                if let Some(live) = watched.find(&run) {
                    // Nobody may want them: most readers take events alone.
                    let _ = live.deltas.send(delta);
                }
            }
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
