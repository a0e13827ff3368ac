//! Making keys.

use cofferdam_core::{Action, Actor, InputError, KeyId, KeyInput, OwnerName, Scope, Subject};
use cofferdam_store::NewKey;
use serde_json::json;

use super::KeyText;
use crate::Operations;
use crate::authorise::mandate;
use crate::clock::now_ms;
use crate::error::Error;
use crate::random::random_bits;

/// A key that was made, with its text, which nobody can show again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeKey {
    /// Its id.
    pub id: KeyId,
    /// Whom it acts for.
    pub owner: OwnerName,
    /// The key.
    pub key: KeyText,
}

impl Operations {
    /// Makes a key and keeps its hash.
    ///
    /// # Errors
    /// [`Error`]; then the key opens nothing.
    pub async fn create_key(&self, actor: &Actor, input: &KeyInput) -> Result<MadeKey, Error> {
        self.authorise(actor, Action::CreateKey, &input.name, Subject::Nothing).await?;
        let name: OwnerName = input.name.parse().map_err(|_| {
            InputError::invalid(
                "name",
                "must be 1 to 100 characters on one line, without spaces around",
                "say what the key is for, such as `ci`",
            )
        })?;
        let owner = match &input.owner {
            Some(owner) => owner.parse().map_err(|error| InputError::of_value("owner", error))?,
            None => name.clone(),
        };
        if input.scopes.iter().next().is_none() {
            let hint = "name some of `read`, `run` and `system`";
            return Err(InputError::invalid("scopes", "must not be empty", hint).into());
        }
        // Each is somebody of our own, whose runs a weak key would touch.
        let own = [OwnerName::system(), OwnerName::local(), OwnerName::loopback()];
        if own.contains(&owner) && !input.scopes.allow(Scope::System) {
            let problem = format!("`{owner}` is an owner of the service itself");
            let hint = "name another owner, or give the key the scope `system`";
            return Err(InputError::invalid("owner", problem, hint).into());
        }
        let made = MadeKey { id: KeyId::new(now_ms(), random_bits()), owner, key: KeyText::new() };
        let key = NewKey {
            id: made.id.clone(),
            name: name.as_str().to_owned(),
            sha256: made.key.sha256(),
            scopes: input.scopes.clone(),
            owner: made.owner.clone(),
        };
        let about = json!({ "name": key.name, "scopes": key.scopes, "owner": key.owner });
        self.store.create_key(&mandate(actor, Action::CreateKey, made.id.as_str(), about), &key).await?;
        Ok(made)
    }
}
