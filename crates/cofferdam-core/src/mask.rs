//! Which files of a workspace are hidden from the agent.

use serde::{Deserialize, Serialize};

/// File names that usually hold secrets. The private-key names are spelled out instead of `id_*`,
/// which would also hide `id_generator.py` and break builds.
pub const DEFAULT_MASK: &[&str] =
    &[".env*", "*.pem", "*.key", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"];

/// Names that match [`DEFAULT_MASK`] and are meant to be shared.
pub(crate) const DEFAULT_UNMASK: &[&str] =
    &[".env*.example", ".env*.sample", ".env*.template", ".env*.dist", "id_*.pub"];

/// Which files of a workspace are hidden: what matches `hide` and not `show`.
///
/// A pattern without a slash is compared with the file's name, one with a slash with its path from the
/// workspace's root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mask {
    /// Patterns of what is hidden.
    pub hide: Vec<String>,
    /// Patterns of what is shown all the same.
    pub show: Vec<String>,
}

impl Default for Mask {
    fn default() -> Self {
        let own = |patterns: &[&str]| patterns.iter().map(|&p| p.to_owned()).collect();
        Self { hide: own(DEFAULT_MASK), show: own(DEFAULT_UNMASK) }
    }
}
