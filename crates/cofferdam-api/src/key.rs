//! API keys.

use cofferdam_core::{KeyId, OwnerName, Scopes};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::{KeyIdText, OwnerText, ScopeText};

/// An API key on record, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyResponse {
    /// Its id. It is not the key.
    #[schema(value_type = KeyIdText)]
    pub id: KeyId,
    /// What it is for.
    pub name: String,
    /// What it opens.
    #[schema(value_type = Vec<ScopeText>)]
    pub scopes: Scopes,
    /// Whom it acts for.
    #[schema(value_type = OwnerText)]
    pub owner: OwnerName,
    /// When it was made.
    pub created_at_ms: u64,
    /// When it was last used, to the minute.
    pub used_at_ms: Option<u64>,
    /// When it was revoked; it opens nothing since.
    pub revoked_at_ms: Option<u64>,
}

/// All keys, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    /// The keys.
    pub keys: Vec<KeyResponse>,
}

/// A key that was made. Nobody can show it again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeKeyResponse {
    /// Its id.
    #[schema(value_type = KeyIdText)]
    pub id: KeyId,
    /// What it is for.
    pub name: String,
    /// What it opens.
    #[schema(value_type = Vec<ScopeText>)]
    pub scopes: Scopes,
    /// Whom it acts for.
    #[schema(value_type = OwnerText)]
    pub owner: OwnerName,
    /// The key: send it as `X-API-Key`.
    pub key: String,
}

/// Never the key itself: it would end up in a log.
impl std::fmt::Debug for MadeKeyResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeKeyResponse").field("id", &self.id).finish_non_exhaustive()
    }
}
