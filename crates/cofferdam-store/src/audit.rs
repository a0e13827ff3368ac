//! Who asked for which change, and what became of it.

use serde_json::Value;

/// An entry of the audit: a change, or refusals of one kind within a minute.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Its number; they grow.
    pub seq: u64,
    /// When; of refusals the first.
    pub at_ms: u64,
    /// Who: a key's id, or how somebody without one came in.
    pub actor: String,
    /// What, such as `run.create`. Entries of older programs have names that are no actions today.
    pub action: String,
    /// On what, such as a run's id; of refusals the first.
    pub subject: String,
    /// More about it, of refusals about the first; never a secret.
    pub data: Value,
    /// What became of it.
    pub outcome: AuditOutcome,
    /// How often: 1 for a change; refusals of one actor and action within a minute are one entry.
    pub count: u64,
}

/// What became of what somebody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum AuditOutcome {
    /// It was done: the change and its entry were written together.
    Done,
    /// It was refused, and nothing was changed.
    Refused,
}

impl AuditOutcome {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}
