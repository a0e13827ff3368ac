//! Removing a run that has ended.

use cofferdam_core::{Action, Actor, RunId};
use cofferdam_store::Artifact;
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

impl Operations {
    /// Forgets a run that has ended, with its events, messages and dead letter. Returns what it has left: those files are
    /// the caller's to remove.
    ///
    /// # Errors
    /// [`Error`]; [`Error::RunNotEnded`] for a run that is still under way.
    pub async fn remove_run(&self, actor: &Actor, id: &RunId) -> Result<Vec<Artifact>, Error> {
        self.touchable_run(actor, Action::RemoveRun, id).await?;
        let artifacts = self.store.artifacts(id).await?;
        self.store.remove_run(&mandate(actor, Action::RemoveRun, id.as_str(), json!({})), id).await?;
        Ok(artifacts)
    }
}
