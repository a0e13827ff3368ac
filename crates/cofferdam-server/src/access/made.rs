//! Making keys.

use cofferdam_core::{KeyId, Scopes};
use cofferdam_store::{Error, NewAudit, NewKey, Store};
use serde_json::json;

use super::key_text::KeyText;
use crate::app::now_ms;
use crate::random::random_bits;

/// The name of the key that the first start makes.
pub const FIRST_KEY_NAME: &str = "first start";

/// A key that was made, with its text, which nobody can show again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeKey {
    /// Its id.
    pub id: KeyId,
    /// The key.
    pub key: KeyText,
}

/// Makes a key and keeps its hash.
///
/// # Errors
/// If the record cannot be written; then the key opens nothing.
pub async fn make_key(store: &Store, name: &str, scopes: Scopes, actor: &str) -> Result<MadeKey, Error> {
    let made = MadeKey { id: KeyId::new(now_ms(), random_bits()), key: KeyText::new() };
    let change = NewAudit {
        at_ms: now_ms(),
        actor: actor.to_owned(),
        action: "key.create".to_owned(),
        subject: made.id.to_string(),
        data: json!({ "name": name, "scopes": scopes }),
    };
    store.record_audit(&change).await?;
    let key = NewKey { id: made.id.clone(), name: name.to_owned(), sha256: made.key.sha256(), scopes };
    store.create_key(&key, now_ms()).await?;
    Ok(made)
}
