//! Forgetting a dead letter.

use cofferdam_core::{Action, Actor, RunId};
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

impl Operations {
    /// Forgets a dead letter, and not its run.
    ///
    /// # Errors
    /// [`Error::DeadLetterNotFound`] also for a run that the actor may not see.
    pub async fn remove_dead_letter(&self, actor: &Actor, run: &RunId) -> Result<(), Error> {
        const ACTION: Action = Action::RemoveDeadLetter;
        let missing = || Error::DeadLetterNotFound(run.clone());
        match self.touchable_run(actor, ACTION, run).await {
            Ok(_) => {}
            Err(Error::RunNotFound(_)) => return Err(missing()),
            Err(error) => return Err(error),
        }
        match self.store.remove_letter(&mandate(actor, ACTION, run.as_str(), json!({})), run).await? {
            true => Ok(()),
            false => Err(missing()),
        }
    }
}
