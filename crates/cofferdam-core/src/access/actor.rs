//! Who asks for an operation.

use crate::access::{OwnerName, Scope, Scopes};
use crate::ids::KeyId;
use crate::text::named;

/// Who asks for an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// The holder of an API key.
    Key {
        /// Which key.
        id: KeyId,
        /// Whom it acts for.
        owner: OwnerName,
        /// What it opens.
        scopes: Scopes,
    },
    /// Somebody on this machine without a key, where the operator wants none from them. It could be anybody.
    Loopback,
    /// Whoever types commands on this machine and can read the state folder.
    LocalUser,
    /// One of our own roles, which acts without being asked.
    Role(OwnRole),
}

/// A role of our own that acts without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum OwnRole {
    /// Tries whether an agent could work now.
    AuthCheck,
    /// Makes the first key of a service.
    FirstStart,
}

impl OwnRole {
    /// Every role.
    pub const ALL: [Self; 2] = [Self::AuthCheck, Self::FirstStart];
}

impl Actor {
    /// The name in records of changes.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Key { id, .. } => id.to_string(),
            Self::Loopback => "loopback".to_owned(),
            Self::LocalUser => "local".to_owned(),
            Self::Role(role) => format!("role:{}", role.as_str()),
        }
    }

    /// Whose runs it makes.
    #[must_use]
    pub fn owner(&self) -> OwnerName {
        match self {
            Self::Key { owner, .. } => owner.clone(),
            Self::Loopback => OwnerName::loopback(),
            Self::LocalUser => OwnerName::local(),
            Self::Role(_) => OwnerName::system(),
        }
    }

    /// Whether a key has a scope. `system` implies the others.
    #[must_use]
    pub fn has_scope(&self, scope: Scope) -> bool {
        match self {
            Self::Key { scopes, .. } => scopes.allow(scope) || scopes.allow(Scope::System),
            Self::Loopback => matches!(scope, Scope::Read | Scope::Run),
            Self::LocalUser | Self::Role(_) => true,
        }
    }
}

named!(OwnRole);
