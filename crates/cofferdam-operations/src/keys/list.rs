//! Listing keys.

use cofferdam_core::{Action, Actor, Subject};
use cofferdam_store::KeyRecord;

use crate::Operations;
use crate::error::Error;

impl Operations {
    /// The keys, the oldest first, without the keys themselves.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_keys(&self, actor: &Actor) -> Result<Vec<KeyRecord>, Error> {
        self.authorise(actor, Action::ListKeys, "", Subject::Nothing).await?;
        Ok(self.store.keys().await?)
    }
}
