//! The proof that somebody may change something, and the entry of the audit that says so: a [`Mandate`].
//!
//! The store's writes on somebody's behalf take one and write it down in the same transaction. It is made by [`issue`] alone,
//! and only two crates depend on this one: `cofferdam-store`, which takes mandates, and `cofferdam-operations`, which has
//! asked the judge before it issues one. A crate cannot call what it does not depend on, so the compiler holds the rule, and
//! `crates/cofferdam/tests/edges.rs` holds the dependencies.

use cofferdam_core::{Action, Actor, OwnerName};
use serde_json::Value;

/// The proof that an actor may do something now.
#[derive(Debug, Clone, PartialEq)]
pub struct Mandate {
    at_ms: u64,
    actor: String,
    owner: OwnerName,
    action: Action,
    subject: String,
    data: Value,
}

/// Issues a mandate for an actor who was judged. `subject` is what is changed, such as a run's id; `data` says more about it,
/// and never holds a secret.
#[must_use]
pub fn issue(actor: &Actor, action: Action, subject: &str, data: Value, now_ms: u64) -> Mandate {
    Mandate {
        at_ms: now_ms,
        actor: actor.name(),
        owner: actor.owner(),
        action,
        subject: subject.to_owned(),
        data,
    }
}

impl Mandate {
    /// When it was issued: the time of the change.
    #[must_use]
    pub fn at_ms(&self) -> u64 {
        self.at_ms
    }

    /// Who asks, as the audit names them.
    #[must_use]
    pub fn actor(&self) -> &str {
        &self.actor
    }

    /// Whose it is, if something is made.
    #[must_use]
    pub fn owner(&self) -> &OwnerName {
        &self.owner
    }

    /// What is done.
    #[must_use]
    pub fn action(&self) -> Action {
        self.action
    }

    /// On what.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// More about it.
    #[must_use]
    pub fn data(&self) -> &Value {
        &self.data
    }
}
