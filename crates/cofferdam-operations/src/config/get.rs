//! Reading what may change while the service runs.

use cofferdam_core::{Action, Actor, ConfigReport, Subject};

use crate::Operations;
use crate::error::Error;

impl Operations {
    /// What is in force, with where each value was set.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get_config(&self, actor: &Actor) -> Result<ConfigReport, Error> {
        self.authorise(actor, Action::ReadConfig, "", Subject::Nothing).await?;
        Ok(self.recorded_config().await?.report(&self.settings))
    }
}
