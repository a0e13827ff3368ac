//! Reading what executes runs.

use std::sync::Arc;

use cofferdam_core::{Action, Actor, Effective, Subject};
use cofferdam_store::NodeRecord;

use crate::Operations;
use crate::error::Error;

impl Operations {
    /// The nodes that execute runs, as they last told of themselves.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_nodes(&self, actor: &Actor) -> Result<Vec<NodeRecord>, Error> {
        self.authorise(actor, Action::ListNodes, "", Subject::Nothing).await?;
        Ok(self.store.nodes().await?)
    }

    /// The settings of this moment, for somebody who may list the agents that they name.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn agents_in_force(&self, actor: &Actor) -> Result<Arc<Effective>, Error> {
        self.authorise(actor, Action::ListAgents, "", Subject::Nothing).await?;
        Ok(self.now().await?.settings)
    }

    /// Whether an actor may read numbers for monitoring.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub async fn may_read_metrics(&self, actor: &Actor) -> Result<(), Error> {
        self.authorise(actor, Action::ReadMetrics, "", Subject::Nothing).await
    }
}
