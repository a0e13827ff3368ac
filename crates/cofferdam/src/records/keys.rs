//! The keys of a service: in the record of this machine, or by the service itself.

use async_trait::async_trait;
use cofferdam_api::{Client, KeyResponse};
use cofferdam_core::{Actor, KeyId, KeyInput};
use cofferdam_operations::{MadeKey, NotAKey, Operations};
use cofferdam_store::KeyRecord;

use super::{client_failure, operation_failure};
use crate::failure::Failure;

/// Whoever sits at this machine and may write to the record.
const ACTOR: Actor = Actor::LocalUser;

/// What the `keys` commands need.
#[async_trait(?Send)]
pub(crate) trait KeyRecords {
    /// Makes a key, and shows it this once.
    async fn create(&self, input: &KeyInput) -> Result<MadeKey, Failure>;

    /// The keys, the oldest first.
    async fn list(&self) -> Result<Vec<KeyRecord>, Failure>;

    /// Makes a key open nothing any more.
    async fn revoke(&self, id: &KeyId) -> Result<(), Failure>;
}

#[async_trait(?Send)]
impl KeyRecords for Operations {
    async fn create(&self, input: &KeyInput) -> Result<MadeKey, Failure> {
        self.create_key(&ACTOR, input).await.map_err(operation_failure)
    }

    async fn list(&self) -> Result<Vec<KeyRecord>, Failure> {
        self.list_keys(&ACTOR).await.map_err(operation_failure)
    }

    async fn revoke(&self, id: &KeyId) -> Result<(), Failure> {
        self.revoke_key(&ACTOR, id).await.map_err(operation_failure)
    }
}

#[async_trait(?Send)]
impl KeyRecords for Client {
    async fn create(&self, input: &KeyInput) -> Result<MadeKey, Failure> {
        let made = self.create_key(input).await.map_err(|error| client_failure(&error))?;
        let key = made.key.parse().map_err(|error: NotAKey| {
            Failure::internal("what the service answered cannot be read", &error)
        })?;
        Ok(MadeKey { id: made.id, owner: made.owner, key })
    }

    async fn list(&self) -> Result<Vec<KeyRecord>, Failure> {
        let listed = self.keys().await.map_err(|error| client_failure(&error))?;
        Ok(listed.keys.into_iter().map(record_of).collect())
    }

    async fn revoke(&self, id: &KeyId) -> Result<(), Failure> {
        self.revoke_key(id).await.map_err(|error| client_failure(&error))
    }
}

/// A key as this machine's record would have it.
fn record_of(key: KeyResponse) -> KeyRecord {
    let KeyResponse { id, name, scopes, owner, created_at_ms, used_at_ms, revoked_at_ms } = key;
    KeyRecord { id, name, owner, scopes, created_at_ms, used_at_ms, revoked_at_ms }
}
