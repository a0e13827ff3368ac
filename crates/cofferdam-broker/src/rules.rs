//! The allow-list of an attempt, which may grow while it runs.

use std::sync::{Arc, PoisonError, RwLock};

use cofferdam_core::{AllowRule, HostPort};

/// What an attempt was granted, and what was added since.
pub(crate) struct Rules {
    granted: Vec<AllowRule>,
    current: RwLock<Arc<[AllowRule]>>,
}

impl Rules {
    /// The rules of a grant.
    pub(crate) fn new(granted: Vec<AllowRule>) -> Self {
        let current = RwLock::new(granted.clone().into());
        Self { granted, current }
    }

    /// Replaces the additions. Connections that are open stay.
    pub(crate) fn set_additions(&self, additions: Vec<AllowRule>) {
        let all = self.granted.iter().cloned().chain(additions).collect();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// The rules of this moment: one decision is made with one list from its beginning to its end.
    pub(crate) fn current(&self) -> Arc<[AllowRule]> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether any of the rules lists a target.
pub(crate) fn list(rules: &[AllowRule], target: &HostPort) -> bool {
    rules.iter().any(|rule| rule.lists(target))
}
