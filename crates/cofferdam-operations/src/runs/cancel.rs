//! Asking for a run's end.

use cofferdam_core::{Action, Actor, RunId, RunState};
use cofferdam_store::CancelAnswer;
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled {
    /// Where the run stands now.
    pub state: RunState,
    /// Whether anything was asked for: false for a run that had ended before.
    pub requested: bool,
}

impl Operations {
    /// Asks for a run's end. A queued run ends at once, a running one when its node has heard of it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn cancel_run(&self, actor: &Actor, id: &RunId) -> Result<Cancelled, Error> {
        self.touchable_run(actor, Action::CancelRun, id).await?;
        let answer =
            self.store.request_cancel(&mandate(actor, Action::CancelRun, id.as_str(), json!({})), id).await?;
        // Its node polls as well, should this not reach it.
        self.store.wake();
        Ok(match answer {
            CancelAnswer::Cancelled => Cancelled { state: RunState::Cancelled, requested: true },
            CancelAnswer::Requested => Cancelled { state: RunState::Running, requested: true },
            CancelAnswer::AlreadyFinal(state) => Cancelled { state, requested: false },
        })
    }
}
