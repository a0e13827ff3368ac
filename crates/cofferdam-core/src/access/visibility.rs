//! Whose runs somebody sees.

use serde::{Deserialize, Serialize};

use crate::access::{Actor, OwnerName, Scope};

/// Whose runs a key with the scope `read` sees: the setting `service.visibility`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Those of every owner.
    #[default]
    All,
    /// Those of its own owner.
    Own,
}

/// Whose runs somebody sees: what lists, counts and streams hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sees {
    /// Those of every owner.
    Everything,
    /// Those of this owner.
    Only(OwnerName),
}

impl Sees {
    /// Whether a run of this owner is among them.
    #[must_use]
    pub fn includes(&self, owner: &OwnerName) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(own) => own == owner,
        }
    }
}

impl Actor {
    /// Whose runs this actor sees.
    #[must_use]
    pub fn sees(&self, visibility: Visibility) -> Sees {
        match self {
            Self::LocalUser | Self::Role(_) | Self::Loopback => Sees::Everything,
            Self::Key { .. } if self.has_scope(Scope::System) => Sees::Everything,
            Self::Key { .. } if self.has_scope(Scope::Read) && visibility == Visibility::All => {
                Sees::Everything
            }
            Self::Key { owner, .. } => Sees::Only(owner.clone()),
        }
    }
}
