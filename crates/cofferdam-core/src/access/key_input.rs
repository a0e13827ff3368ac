//! What is said about a new API key.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::{Scope, Scopes};
use crate::text_schema::{OwnerText, ScopeText};

/// A key that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateKeyRequest)]
pub struct KeyInput {
    /// What it is for.
    #[schema(value_type = OwnerText)]
    pub name: String,
    /// What it opens; `read` and `run` without it.
    #[serde(default = "usual_scopes")]
    #[schema(value_type = Vec<ScopeText>, min_items = 1)]
    pub scopes: Scopes,
    /// Whom it acts for; its own name without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OwnerText>)]
    pub owner: Option<String>,
}

fn usual_scopes() -> Scopes {
    [Scope::Read, Scope::Run].into_iter().collect()
}
