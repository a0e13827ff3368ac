//! Who changed what through the service.

use serde_json::Value;

/// A change that is to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAudit {
    /// When.
    pub at_ms: u64,
    /// Who: a key's id, or how somebody without one came in.
    pub actor: String,
    /// What, such as `run.created`.
    pub action: String,
    /// On what, such as a run's id.
    pub subject: String,
    /// More about it; never a secret.
    pub data: Value,
}

/// A change on record.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Its number; they grow.
    pub seq: u64,
    /// What was changed.
    pub change: NewAudit,
}
