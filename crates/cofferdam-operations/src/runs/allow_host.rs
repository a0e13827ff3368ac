//! Adding to what a live run may reach.

use cofferdam_core::{Action, Actor, AllowRule, RunId};
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

impl Operations {
    /// Adds to what the broker lets a run reach. False if it could already.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn allow_host(&self, actor: &Actor, id: &RunId, rule: &AllowRule) -> Result<bool, Error> {
        self.touchable_run(actor, Action::AllowHost, id).await?;
        let mandate = mandate(actor, Action::AllowHost, id.as_str(), json!({ "allow": rule }));
        let added = self.store.allow(&mandate, id, rule).await?;
        // Its broker polls as well, should this not reach it.
        self.store.wake();
        Ok(added)
    }
}
