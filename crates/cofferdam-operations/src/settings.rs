//! Reading what the operator has set.

use cofferdam_core::{Action, Actor, Effective, Subject};

use crate::Operations;
use crate::error::Error;

impl Operations {
    /// The settings that requests are judged by, with where each was set.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub async fn read_settings(&self, actor: &Actor) -> Result<&Effective, Error> {
        self.authorise(actor, Action::ReadSettings, "", Subject::Nothing).await?;
        Ok(&self.settings)
    }

    /// Whether an actor may list what of repositories is trusted. It is no part of the record: the caller has it.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub async fn may_read_trust(&self, actor: &Actor) -> Result<(), Error> {
        self.authorise(actor, Action::ReadTrust, "", Subject::Nothing).await
    }
}
