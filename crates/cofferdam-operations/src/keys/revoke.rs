//! Revoking keys.

use cofferdam_core::{Action, Actor, KeyId, Subject};
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

impl Operations {
    /// Makes a key open nothing any more.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn revoke_key(&self, actor: &Actor, id: &KeyId) -> Result<(), Error> {
        self.authorise(actor, Action::RevokeKey, id.as_str(), Subject::Nothing).await?;
        let revoked =
            self.store.revoke_key(&mandate(actor, Action::RevokeKey, id.as_str(), json!({})), id).await?;
        match revoked {
            true => Ok(()),
            false => Err(Error::KeyNotFound(id.clone())),
        }
    }
}
