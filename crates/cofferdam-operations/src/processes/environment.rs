//! Which environment is in force: the one place that says so.

use cofferdam_core::{Environment, Mode};

use crate::Operations;
use crate::error::Error;

impl Operations {
    /// The environment that runs get which name no mode of their own, as the settings and what is on record over them say now.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub async fn environment(&self) -> Result<Environment, Error> {
        Ok(Environment::of(self.mode().await?))
    }

    /// The mode of those runs.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub async fn mode(&self) -> Result<Mode, Error> {
        Ok(self.now().await?.settings.settings.sandbox.mode)
    }
}
