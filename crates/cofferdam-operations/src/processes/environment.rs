//! Which environment is in force: the one place that says so.

use cofferdam_core::Environment;
use cofferdam_store::Error;

use crate::Operations;

impl Operations {
    /// The environment that runs get which name no mode of their own.
    ///
    /// # Errors
    /// If the record cannot be read.
    #[expect(clippy::unused_async, reason = "what the record says of it is read here")]
    pub async fn environment(&self) -> Result<Environment, Error> {
        Ok(Environment::of(&self.settings.settings))
    }
}
