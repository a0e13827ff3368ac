//! Reading what the operator has set.

use std::sync::Arc;

use cofferdam_core::{Action, Actor, Effective, Subject};

use crate::Operations;
use crate::error::Error;

impl Operations {
    /// The settings that requests are judged by now, what is on record included, with where each was set.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn read_settings(&self, actor: &Actor) -> Result<Arc<Effective>, Error> {
        self.authorise(actor, Action::ReadSettings, "", Subject::Nothing).await?;
        Ok(self.now().await?.settings)
    }

    /// Whether an actor may list what of repositories is trusted. It is no part of the record: the caller has it.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub async fn may_read_trust(&self, actor: &Actor) -> Result<(), Error> {
        self.authorise(actor, Action::ReadTrust, "", Subject::Nothing).await
    }
}
